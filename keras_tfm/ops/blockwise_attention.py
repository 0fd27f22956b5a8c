"""Exact attention in memory that grows with T, and not with T times S.

The scores are made, used and forgotten tile by tile. While a query passes over
the keys it keeps the largest score so far, the sum of the powers and the sum of
the values; where a larger score comes, both sums are scaled down to it. The
gradient makes the tiles anew.

Shape letters: B batch, H heads, T query length, S key length, D head size; I
and J tiles along the queries and the keys, M and N positions of a tile.

Reference:
    [Milakov and Gimelshein, 2018](https://arxiv.org/abs/1805.02867) for the
    softmax in one pass; [Rabe and Staats, 2021](https://arxiv.org/abs/2112.05682)
    and [Dao et al., 2022](https://arxiv.org/abs/2205.14135) for attention.
"""

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share
from keras_tfm.ops.attention import LOWEST_SCORE
from keras_tfm.ops.attention_tiling import TileDropout
from keras_tfm.ops.attention_tiling import Tiling
from keras_tfm.ops.tiles import DistanceTiles
from keras_tfm.ops.tiles import Tiles
from keras_tfm.ops.tiles import add_at
from keras_tfm.ops.tiles import join
from keras_tfm.ops.tiles import put_at

QUERY_TILE = 256
KEY_TILE = 512


def blockwise_attention(
    query,
    key,
    value,
    masks=(),
    position_bias=None,
    use_causal_mask=False,
    dropout=0.0,
    seed=None,
    query_tile=QUERY_TILE,
    key_tile=KEY_TILE,
    distance_scores=None,
):
    """Average the values of all keys by the weights of each query.

    What `dot_product_attention` returns first, without ever holding the
    weights. Tiles that lie in the future are not computed.

    Args:
        query: Float tensor `(B, H, T, D)`.
        key: Float tensor `(B, H, S, D)`.
        value: Float tensor `(B, H, S, D)`; its last size may differ.
        masks: Sequence of boolean tensors that broadcast to `(B, H, T, S)`; a
            pair attends where all of them are `True`. A padding mask
            `(B, 1, 1, S)` takes no more memory than that.
        position_bias: Float tensor that broadcasts to `(B, H, T, S)`, added to
            the scores, or `None`.
        use_causal_mask: Boolean. Hide the future; the last query is aligned
            with the last key. Defaults to `False`.
        dropout: Float in [0, 1). Share of the weights to drop; the same ones
            as `ops.dropout` drops of the whole weights with this seed.
            Defaults to `0.0`.
        seed: Integer tensor `(2,)`. Needed with dropout.
        query_tile: Positive integer M. Queries at once. Defaults to 256.
        key_tile: Positive integer N. Keys at once. Defaults to 512.
        distance_scores: Float tensor `(H, T + S - 1)`, added to the scores by
            the distance of query and key: the first is of the last query and
            the first key. Defaults to `None`.

    Returns:
        Tensor `(B, H, T, D)`. A query that may attend nowhere gets zeros.

    Raises:
        ValueError: If a size or share is out of range, or a seed is missing.

    Example:
        >>> x = ops.ones((1, 1, 3, 4))
        >>> blockwise_attention(x, x, x, query_tile=2, key_tile=2).shape
        TensorShape([1, 1, 3, 4])
    """
    check_positive_int("query_tile", query_tile)
    check_positive_int("key_tile", key_tile)
    if check_share("dropout", dropout) and seed is None:
        raise ValueError(
            f"Dropout needs a `seed`. Received: dropout={dropout}, seed=None."
        )
    tiling = Tiling(query, key, masks, use_causal_mask, (query_tile, key_tile))
    drop = TileDropout(tiling, dropout, seed) if dropout else None
    biases = {
        kind: bias
        for kind, bias in (
            (Tiles, position_bias),
            (DistanceTiles, distance_scores),
        )
        if bias is not None
    }

    def output_and_gradient(query, key, value, *biases_given):
        in_tiles = [
            tiling.bias(kind, bias)
            for kind, bias in zip(biases, biases_given, strict=True)
        ]
        parts = _Parts(tiling, drop, query, key, value, in_tiles)
        output, *softmax = parts.attend()

        def gradient(*args, upstream=None):
            (upstream,) = args or (upstream,)
            return parts.gradients(upstream, output, *softmax)

        return join(output, 2, tiling.queries), gradient

    operands = (query, key, value, *biases.values())
    return ops.custom_gradient(output_and_gradient)(*operands)


class _Parts:
    """Queries, keys and values in tiles, and what is computed of them."""

    def __init__(self, tiling, drop, query, key, value, biases):
        self._tiling = tiling
        self._drop = drop
        self._scale = query.shape[-1] ** -0.5
        # Scaled before the product, which keeps float16 from overflowing.
        self._queries = tiling.cut_queries(query * self._scale)
        self._keys = tiling.cut_keys(key)
        self._values = tiling.cut_keys(value)
        self._biases = biases

    def attend(self):
        """Return the output, the largest scores and the sums of the powers.

        In tiles: `(I, B, H, M, D)`, and `(I, B, H, M, 1)` twice.
        """
        tiling = self._tiling
        shape = (tiling.batch, tiling.heads, tiling.query_size)
        size = self._values.shape[-1]

        def attend(query_tile, results):
            def add(key_tile, sums):
                return self._add_tile(query_tile, key_tile, *sums)

            largest, total, sums = ops.fori_loop(
                0,
                tiling.visible_key_tiles(query_tile),
                add,
                (
                    ops.full((*shape, 1), LOWEST_SCORE, dtype="float32"),
                    ops.zeros((*shape, 1), dtype="float32"),
                    ops.zeros((*shape, size), dtype="float32"),
                ),
            )
            # A query that may attend nowhere gets zeros.
            total = ops.where(ops.equal(total, 0.0), 1.0, total)
            output = ops.cast(sums / total, self._values.dtype)
            return tuple(
                put_at(result, query_tile, tile)
                for result, tile in zip(
                    results, (output, largest, total), strict=True
                )
            )

        tiles = (tiling.query_tiles, *shape)
        output = ops.zeros((*tiles, size), dtype=self._values.dtype)
        softmax = ops.zeros((*tiles, 1), dtype="float32")
        return ops.fori_loop(
            0, tiling.query_tiles, attend, (output, softmax, softmax)
        )

    def gradients(self, upstream, output, largest, total):
        """Return the derivatives by query, key, value, and bias if any."""
        tiling = self._tiling
        upstream = tiling.cut_queries(upstream)
        # The softmax takes from each derivative their mean by the weights.
        means = ops.sum(
            ops.cast(upstream, "float32") * ops.cast(output, "float32"),
            axis=-1,
            keepdims=True,
        )

        def pass_keys(query_tile, sums):
            def pass_tile(key_tile, sums):
                return self._gradient_tile(
                    query_tile,
                    key_tile,
                    upstream[query_tile],
                    means[query_tile],
                    (largest[query_tile], total[query_tile]),
                    sums,
                )

            return ops.fori_loop(
                0, tiling.visible_key_tiles(query_tile), pass_tile, sums
            )

        tiles = [self._queries, self._keys, self._values]
        tiles += [bias.values for bias in self._biases]
        sums = ops.fori_loop(
            0,
            tiling.query_tiles,
            pass_keys,
            tuple(ops.zeros_like(t, dtype="float32") for t in tiles),
        )
        by_query, by_key, by_value, *by_bias = sums
        found = [
            join(by_query * self._scale, 2, tiling.queries),
            join(by_key, 2, tiling.keys),
            join(by_value, 2, tiling.keys),
        ]
        found += [
            bias.joined(values)
            for bias, values in zip(self._biases, by_bias, strict=True)
        ]
        return tuple(
            ops.cast(gradient, tile.dtype)
            for gradient, tile in zip(found, tiles, strict=True)
        )

    def _add_tile(self, query_tile, key_tile, largest, total, sums):
        scores = self._scores(query_tile, key_tile)
        mask = self._tiling.mask(query_tile, key_tile)
        scores = _visible(mask, scores, LOWEST_SCORE)
        new_largest = ops.maximum(
            largest, ops.max(scores, axis=-1, keepdims=True)
        )
        powers = _visible(mask, ops.exp(scores - new_largest), 0.0)
        shrink = ops.exp(largest - new_largest)
        total = total * shrink + ops.sum(powers, axis=-1, keepdims=True)
        if self._drop is not None:
            powers = self._drop(query_tile, key_tile, powers)
        added = _product(powers, self._values[key_tile])
        return new_largest, total, sums * shrink + added

    def _gradient_tile(
        self, query_tile, key_tile, upstream, means, softmax, sums
    ):
        scores = self._scores(query_tile, key_tile)
        mask = self._tiling.mask(query_tile, key_tile)
        # Not the difference to the logarithm of the sum: of large scores it
        # would leave too few digits.
        largest, total = softmax
        weights = _visible(mask, ops.exp(scores - largest) / total, 0.0)
        errors = _product(upstream, _turned(self._values[key_tile]))
        used = weights
        if self._drop is not None:
            used = self._drop(query_tile, key_tile, weights)
            errors = self._drop(query_tile, key_tile, errors)
        by_score = weights * (errors - means)
        by_query = _product(by_score, self._keys[key_tile])
        by_key = _product(_turned(by_score), self._queries[query_tile])
        by_value = _product(_turned(used), upstream)
        sums = list(sums)
        sums[0] = add_at(sums[0], [query_tile], by_query)
        sums[1] = add_at(sums[1], [key_tile], by_key)
        sums[2] = add_at(sums[2], [key_tile], by_value)
        for place, bias in enumerate(self._biases, start=3):
            sums[place] = bias.add(sums[place], query_tile, key_tile, by_score)
        return tuple(sums)

    def _scores(self, query_tile, key_tile):
        scores = _product(
            self._queries[query_tile], _turned(self._keys[key_tile])
        )
        for bias in self._biases:
            tile = bias.at(query_tile, key_tile)
            scores = scores + ops.cast(tile, "float32")
        return scores


def _product(left, right):
    # Both as half precision where one is, as in dense attention.
    dtype = keras.backend.standardize_dtype(right.dtype)
    left_dtype = keras.backend.standardize_dtype(left.dtype)
    dtype = left_dtype if dtype == "float32" else dtype
    product = ops.matmul(ops.cast(left, dtype), ops.cast(right, dtype))
    return ops.cast(product, "float32")


def _visible(mask, values, hidden):
    return values if mask is None else ops.where(mask, values, hidden)


def _turned(tensor):
    return ops.transpose(tensor, (0, 1, 3, 2))

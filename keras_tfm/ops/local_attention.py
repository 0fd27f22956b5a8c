"""Attention within a window: time and memory that grow with the length alone.

The queries are cut into blocks, and each block meets the keys of its own and
of the neighbouring blocks. A hidden pair within these weighs exactly 0, so that
the result is that of dense attention under the window's mask.

Shape letters: B batch, H heads, T length, D head size; N blocks, M positions of
a block, W positions of the keys that it meets.
"""

from keras import ops

from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.relative_positions import distances_between
from keras_tfm.ops.tiles import cut
from keras_tfm.ops.tiles import join
from keras_tfm.ops.tiles import number_of_tiles


def local_attention(
    query,
    key,
    value,
    window,
    masks=(),
    use_causal_mask=False,
    scores_of=None,
    drop=None,
):
    """Average the values of the keys within each query's window.

    Args:
        query: Float tensor `(B, H, T, D)`.
        key: Float tensor `(B, H, T, D)`.
        value: Float tensor `(B, H, T, D)`; its last size may differ.
        window: `Window`, such as `OwnBlock(256)`.
        masks: Sequence of boolean tensors that broadcast to `(B, H, T, T)`; a
            pair attends where all of them are `True`.
        use_causal_mask: Boolean. Hide the future. Defaults to `False`.
        scores_of: Function of distances `(M, W)`, key minus query, that returns
            scores `(H, M, W)` to add, or `None`.
        drop: Function applied to the weights before the average, or `None`.

    Returns:
        A pair: the output `(B, H, T, D)` and the float32 weights of each block
        `(N * B, H, M, W)` before `drop`, for `spread_weights`.

    Example:
        >>> from keras_tfm.ops.windows import OwnBlock
        >>> x = ops.ones((1, 1, 5, 4))
        >>> output, weights = local_attention(x, x, x, OwnBlock(2))
        >>> tuple(output.shape), tuple(weights.shape)
        ((1, 1, 5, 4), (3, 1, 2, 2))

    Reference:
        [Liu et al., 2018](https://arxiv.org/abs/1801.10198), section 4.2.4;
        [Parmar et al., 2018](https://arxiv.org/abs/1802.05751), section 3.3.
    """
    blocks = _Blocks(window, *ops.shape(query)[:3:2])
    masks = [blocks.masks_of(mask) for mask in masks]
    bias = None
    if scores_of is not None:
        scores = scores_of(blocks.distances())
        bias = None if scores is None else ops.expand_dims(scores, 0)
    heads, weights = dot_product_attention(
        blocks.merge(blocks.of_queries(query, 2)),
        blocks.merge(blocks.of_keys(key, 2)),
        blocks.merge(blocks.of_keys(value, 2)),
        blocks.merge(combine_masks(blocks.visible(use_causal_mask), *masks)),
        bias,
        drop,
    )
    return join(blocks.split(heads), 2, blocks.length), weights


def spread_weights(weights, window, batch_size, length):
    """Write the weights of each block to their places in `(B, H, T, T)`.

    Args:
        weights: What `local_attention` returned second.
        window: The same window.
        batch_size: Integer or scalar tensor B.
        length: Integer or scalar tensor T.

    Returns:
        Float32 tensor `(B, H, T, T)`, 0 outside the windows.
    """
    blocks = _Blocks(window, batch_size, length)
    weights = blocks.split(weights)
    # Key s is at place s - start of what a block meets.
    places = ops.arange(length, dtype="int32") - blocks.starts()
    met = ops.logical_and(places >= 0, places < blocks.width)
    places = ops.reshape(
        ops.clip(places, 0, blocks.width - 1), (-1, 1, 1, 1, length)
    )
    places = ops.broadcast_to(
        places, (blocks.number, *ops.shape(weights)[1:4], length)
    )
    spread = ops.take_along_axis(weights, places, axis=-1)
    met = ops.reshape(met, (-1, 1, 1, 1, length))
    return join(ops.where(met, spread, 0.0), 2, length)


class _Blocks:
    """How a sequence falls into blocks, and what each block meets."""

    def __init__(self, window, batch_size, length):
        self.window = window
        self.batch_size = batch_size
        self.length = length
        self.size = window.block_length
        self.number = number_of_tiles(length, self.size)
        neighbours = window.blocks_before + window.blocks_after
        self.width = (1 + neighbours) * self.size

    def of_queries(self, tensor, axis):
        """Cut an axis of positions: blocks come first, of M positions."""
        return cut(tensor, axis, self.size)

    def of_keys(self, tensor, axis):
        """Cut an axis of positions: blocks come first, of W positions each."""
        own = cut(tensor, axis, self.size)
        before, after = self.window.blocks_before, self.window.blocks_after
        if not before and not after:
            return own
        padding = [[before, after], *[[0, 0]] * (len(own.shape) - 1)]
        padded = ops.pad(own, padding)
        neighbours = [
            padded[shift : shift + self.number]
            for shift in range(1 + before + after)
        ]
        return ops.concatenate(neighbours, axis=axis + 1)

    def masks_of(self, mask):
        """Cut a mask that broadcasts to `(B, H, T, T)` into `(N, …, M, W)`."""
        by_query, by_key = mask.shape[2] != 1, mask.shape[3] != 1
        if by_key and by_query:
            return self._met(mask)
        if by_key:
            return self.of_keys(mask, 3)
        if by_query:
            return self.of_queries(mask, 2)
        return ops.expand_dims(mask, 0)

    def visible(self, causal):
        """Return who may attend to whom within each block, `(N, 1, 1, M, W)`.

        Positions beyond either end are hidden.
        """
        starts = ops.arange(self.number, dtype="int32") * self.size
        queries = ops.arange(self.size, dtype="int32")
        queries = ops.reshape(starts, (-1, 1, 1)) + ops.reshape(
            queries, (1, -1, 1)
        )
        keys = ops.reshape(self.starts(), (-1, 1, 1)) + ops.reshape(
            ops.arange(self.width, dtype="int32"), (1, 1, -1)
        )
        visible = combine_masks(
            self.window.visible(queries, keys), keys >= 0, keys < self.length
        )
        if causal:
            visible = ops.logical_and(visible, keys <= queries)
        return ops.expand_dims(visible, (1, 2))

    def starts(self):
        """Return the position of the first key that each block meets."""
        numbers = ops.arange(self.number, dtype="int32")
        starts = (numbers - self.window.blocks_before) * self.size
        return ops.expand_dims(starts, 1)

    def distances(self):
        """Return how far keys are from queries, the same in all blocks."""
        queries = ops.arange(self.size, dtype="int32")
        keys = ops.arange(self.width, dtype="int32")
        return distances_between(
            queries, keys - self.window.blocks_before * self.size
        )

    def merge(self, tensor):
        """Make the blocks more rows of the batch."""
        shape = ops.shape(tensor)
        if tensor.shape[1] == 1:
            tensor = ops.repeat(tensor, self.batch_size, axis=1)
        return ops.reshape(tensor, (-1, *shape[2:]))

    def split(self, tensor):
        """Take the blocks out of the batch again."""
        shape = ops.shape(tensor)
        return ops.reshape(tensor, (self.number, self.batch_size, *shape[1:]))

    def _met(self, mask):
        # Blocks of keys by blocks of queries, and of these the ones that meet.
        tiles = cut(cut(mask, 3, self.size), 3, self.size)
        before, after = self.window.blocks_before, self.window.blocks_after
        tiles = ops.pad(
            tiles,
            [[0, 0], [before, after], *[[0, 0]] * (len(tiles.shape) - 2)],
        )
        columns = self.number + before + after
        flat = ops.reshape(tiles, (-1, *ops.shape(tiles)[2:]))
        numbers = ops.arange(self.number, dtype="int32")
        met = [
            ops.take(flat, numbers * columns + numbers + shift, axis=0)
            for shift in range(1 + before + after)
        ]
        return ops.concatenate(met, axis=-1)

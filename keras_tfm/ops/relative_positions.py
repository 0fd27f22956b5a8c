"""Scores that depend on how far a key is from its query.

A distance is the position of the key minus that of the query: negative for
what came before. All these scores are known from one value per head and
distance, so a layer keeps `(H, T + S - 1)` numbers and not `(H, T, S)`.

Shape letters: H heads, T query length, S key length, N distances.
"""

import math

import numpy as np
from keras import ops

from keras_tfm.checks import check_positive_int


def distances_between(query_positions, key_positions):
    """Return how far each key is from each query.

    Args:
        query_positions: Integer tensor `(T,)`.
        key_positions: Integer tensor `(S,)`.

    Returns:
        Int32 tensor `(T, S)`.

    Example:
        >>> distances_between([1, 2], [0, 1, 2]).numpy().tolist()
        [[-1, 0, 1], [-2, -1, 0]]
    """
    queries = ops.expand_dims(ops.cast(query_positions, "int32"), 1)
    keys = ops.expand_dims(ops.cast(key_positions, "int32"), 0)
    return keys - queries


def scores_of_pairs(by_distance, num_queries, num_keys):
    """Give each pair of a query and a key the score of its distance.

    Args:
        by_distance: Tensor `(H, T + S - 1)`; the first score is that of the
            last query and the first key.
        num_queries: Integer or scalar tensor T.
        num_keys: Integer or scalar tensor S.

    Returns:
        Tensor `(H, T, S)`.

    Example:
        >>> scores_of_pairs(ops.array([[-1, 0, 1]]), 2, 2).numpy().tolist()
        [[[0, 1], [-1, 0]]]
    """
    distances = distances_between(
        ops.arange(num_queries, dtype="int32"),
        ops.arange(num_keys, dtype="int32"),
    )
    return ops.take(by_distance, distances + num_queries - 1, axis=1)


def relative_buckets(
    distances, num_buckets=32, max_distance=128, bidirectional=True
):
    """Sort distances into buckets: near ones alone, far ones together.

    Half of the buckets of a direction hold one distance each; the others grow
    logarithmically up to `max_distance`, and the last one holds all beyond.

    Args:
        distances: Integer tensor of any shape, key minus query.
        num_buckets: Positive integer; even and at least 4 if `bidirectional`,
            else at least 2.
        max_distance: Positive integer, in tokens, greater than the number of
            distances with a bucket of their own.
        bidirectional: Boolean. Half of the buckets are for keys after the
            query. With `False` those all share bucket 0.

    Returns:
        Int32 tensor as `distances`, from 0 to `num_buckets - 1`.

    Raises:
        ValueError: If a number is out of its range.

    Example:
        >>> relative_buckets([-200, -9, -1, 0, 1, 9]).numpy().tolist()
        [15, 8, 1, 0, 17, 24]

    Reference:
        [Raffel et al., 2020](https://arxiv.org/abs/1910.10683), section 2.1.
        The buckets are those of its code.
    """
    exact = _check_buckets(num_buckets, max_distance, bidirectional)
    one_way = num_buckets // 2 if bidirectional else num_buckets
    buckets = ops.convert_to_tensor(_buckets(exact, one_way, max_distance))
    distances = ops.cast(distances, "int32")
    far = ops.absolute(distances) if bidirectional else -distances
    found = ops.take(buckets, ops.clip(far, 0, max_distance), axis=0)
    if bidirectional:
        found = found + ops.where(distances > 0, one_way, 0)
    return ops.cast(found, "int32")


def alibi_slopes(num_heads):
    """Return how much a score falls with each token of distance, per head.

    For `H` a power of two `2 ** (-8 / H)` and its powers; for other numbers the
    slopes of the power below, and every other one of twice as many heads.

    Args:
        num_heads: Positive integer H.

    Returns:
        NumPy float32 array `(H,)`, all positive.

    Example:
        >>> alibi_slopes(3).tolist()
        [0.0625, 0.00390625, 0.25]

    Reference:
        [Press et al., 2022](https://arxiv.org/abs/2108.12409), section 3; for
        numbers that are no power of two its code.
    """
    check_positive_int("num_heads", num_heads)
    below = 2 ** int(math.log2(num_heads))
    slopes = _geometric(below)
    if below < num_heads:
        slopes += _geometric(2 * below)[0::2][: num_heads - below]
    return np.array(slopes, "float32")


def alibi_scores(distances, num_heads):
    """Return scores that fall linearly with the distance.

    Args:
        distances: Integer tensor of any shape, key minus query. Keys before and
            after the query are treated alike.
        num_heads: Positive integer H.

    Returns:
        Float32 tensor `(H, ...)`, at most 0.

    Example:
        >>> alibi_scores([-2, 0, 2], 1).numpy().tolist()
        [[-0.0078125, 0.0, -0.0078125]]

    Reference:
        [Press et al., 2022](https://arxiv.org/abs/2108.12409), section 3, for
        keys before the query.
    """
    far = ops.cast(ops.absolute(ops.cast(distances, "int32")), "float32")
    slopes = ops.convert_to_tensor(alibi_slopes(num_heads))
    slopes = ops.reshape(slopes, (-1, *[1] * len(far.shape)))
    # Not a product with -slopes: of 0 that would be -0.
    return 0.0 - slopes * ops.expand_dims(far, 0)


def _check_buckets(num_buckets, max_distance, bidirectional):
    check_positive_int("num_buckets", num_buckets)
    check_positive_int("max_distance", max_distance)
    least = 4 if bidirectional else 2
    if num_buckets < least or num_buckets % (least // 2):
        even = "even and " if bidirectional else ""
        raise ValueError(
            f"`num_buckets` must be {even}at least {least}. Received: "
            f"num_buckets={num_buckets}, bidirectional={bidirectional}."
        )
    exact = num_buckets // least
    if max_distance <= exact:
        raise ValueError(
            f"`max_distance` must exceed {exact}, the distances that have a "
            f"bucket of their own. Received: max_distance={max_distance}, "
            f"num_buckets={num_buckets}."
        )
    return exact


def _buckets(exact, one_way, max_distance):
    """Return the bucket of each distance from 0 to `max_distance`."""
    distances = np.arange(max_distance + 1)
    # In float32, as the models were trained: some edges depend on it.
    far = np.maximum(distances, 1).astype("float32") / np.float32(exact)
    steps = np.log(far) / np.float32(math.log(max_distance / exact))
    far = exact + (steps * np.float32(one_way - exact)).astype("int32")
    far = np.minimum(far, one_way - 1)
    return np.where(distances < exact, distances, far).astype("int32")


def _geometric(num_heads):
    return [2.0 ** (-8 * (head + 1) / num_heads) for head in range(num_heads)]

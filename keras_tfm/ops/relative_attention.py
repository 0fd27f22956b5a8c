"""Attention to vectors that stand for distances, beside keys and values.

Row `r + k` of a table of 2k + 1 vectors stands for the distance r, key minus
query; what is farther than k is treated as k.

Shape letters: B batch, H heads, T query length, S key length, D head size.
"""

from keras import ops

from keras_tfm.ops.relative_positions import distances_between


def relative_scores(query, table, query_positions, key_positions):
    """Multiply each query with the vectors of its distances to the keys.

    Args:
        query: Float tensor `(B, H, T, D)`.
        table: Float tensor `(2k + 1, D)`.
        query_positions: Integer tensor `(T,)`.
        key_positions: Integer tensor `(S,)`.

    Returns:
        Float tensor `(B, H, T, S)`, divided by the root of D as other scores
        are.

    Reference:
        [Shaw et al., 2018](https://arxiv.org/abs/1803.02155), equation 5.
    """
    farthest = table.shape[0] // 2
    # Scaled before the product, which keeps float16 from overflowing.
    query = query * (query.shape[-1] ** -0.5)
    products = ops.matmul(query, ops.transpose(table))
    distances = distances_between(query_positions, key_positions)
    rows = ops.clip(distances, -farthest, farthest) + farthest
    rows = ops.broadcast_to(
        rows[None, None], (*ops.shape(products)[:2], *ops.shape(rows))
    )
    return ops.take_along_axis(products, rows, axis=-1)


def relative_values(weights, table, query_positions):
    """Average the vectors of the distances by the weights of the keys.

    Args:
        weights: Float tensor `(B, H, T, S)`; key s stands at position s.
        table: Float tensor `(2k + 1, D)`.
        query_positions: Integer tensor `(T,)`.

    Returns:
        Float tensor `(B, H, T, D)`.

    Reference:
        [Shaw et al., 2018](https://arxiv.org/abs/1803.02155), equation 3.
    """
    farthest = table.shape[0] // 2
    batch_size, heads, length, keys = ops.shape(weights)
    queries = ops.cast(query_positions, "int32")
    positions = ops.arange(keys, dtype="int32")
    distances = distances_between(queries, positions)

    def sum_where(mask):
        kept = ops.where(mask, weights, ops.zeros_like(weights))
        return ops.sum(kept, axis=-1, keepdims=True)

    # One key at most has each of the near distances.
    near = ops.arange(1 - farthest, farthest, dtype="int32")
    places = ops.expand_dims(queries, 1) + near
    there = ops.logical_and(places >= 0, places < keys)
    places = ops.broadcast_to(
        ops.clip(places, 0, keys - 1)[None, None],
        (batch_size, heads, length, 2 * farthest - 1),
    )
    found = ops.take_along_axis(weights, places, axis=-1)
    by_distance = [
        sum_where(distances <= -farthest),
        ops.where(there, found, ops.zeros_like(found)),
        sum_where(distances >= farthest),
    ]
    return ops.matmul(ops.concatenate(by_distance, axis=-1), table)

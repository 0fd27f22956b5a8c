"""Go on with the rows that have not ended, in a smaller batch.

Shape letters: B batch, b rows that are left.

In a batch of static shape a row that has ended keeps its place, and a sentence
that is twice as long as the others is paid for by all of them.
"""

from keras import ops
from keras import tree

# The batch gets smaller when one row in so many is left, and so often at most.
SHARE = 4
_LEVELS = 2


def with_fewer_rows(go_on, found, rows, take_rows, levels=_LEVELS):
    """Write what is left of a search, in ever smaller batches.

    Args:
        go_on: Function of `rows`, an integer, and `found`'s three entries.
            Writes until no more rows than the integer are left, and returns
            the three.
        found: The next position, an integer scalar tensor; the state, a
            dictionary of tensors `(B, …)` with the boolean `done (B,)`, of
            which no more than one row in `SHARE` is left; and the cache.
        rows: `Rows`.
        take_rows: Function of the cache and the numbers of rows `(b,)`.
        levels: Positive integer, how often the batch gets smaller.
            Defaults to `2`.

    Returns:
        The state of all rows at the end.
    """
    index, state, cache = found
    size = ops.shape(state["done"])[0]
    # Of a batch smaller than `SHARE` nothing is left, and one row shows it.
    count = _at_least_one(size // SHARE)
    # Those that are left come first, in their order.
    done = ops.cast(state["done"], "int32")
    order = ops.argsort(ops.arange(size, dtype="int32") + size * done)
    chosen = order[:count]
    few_rows = rows.taken(chosen)
    found = go_on(
        few_rows,
        0 if levels == 1 else count // SHARE,
        index,
        _taken(state, chosen),
        take_rows(cache, chosen),
    )
    part = found[1]
    if levels > 1:
        part = with_fewer_rows(go_on, found, few_rows, take_rows, levels - 1)
    rank = ops.argsort(order)
    return tree.map_structure(
        lambda old, new: _put(old, new, rank, count), state, part
    )


def _at_least_one(number):
    if isinstance(number, int):
        return max(number, 1)
    return ops.maximum(number, 1)


def _taken(tensors, chosen):
    return tree.map_structure(
        lambda tensor: ops.take(tensor, chosen, axis=0), tensors
    )


def _put(old, new, rank, count):
    placed = ops.take(new, ops.minimum(rank, count - 1), axis=0)
    shape = (-1,) + (1,) * (len(old.shape) - 1)
    return ops.where(ops.reshape(rank < count, shape), placed, old)

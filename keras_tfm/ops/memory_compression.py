"""Several positions of a sequence as one, for memory-compressed attention.

A slot stands for c positions next to each other. Read causally, slot t ends
with position c t: slot 0 is the first position, with nothing before it. Read as
a whole, slot t begins with position c t.

Shape letters: B batch, T length, C channels, N slots, c positions of a slot, P
new positions, K alternatives of a search.
"""

from keras import ops

from keras_tfm.ops.positions import positions_from


def number_of_slots(length, factor):
    """Return how many slots stand for so many positions.

    Example:
        >>> number_of_slots(7, 3)
        3
    """
    return (length + factor - 1) // factor


def slot_inputs(sequence, factor, causal):
    """Put the positions of each slot side by side.

    Args:
        sequence: Tensor `(B, T, C)`.
        factor: Positive integer c.
        causal: Boolean. Whether slot t ends with position c t, or begins.

    Returns:
        Tensor `(B, N, c * C)`; 0 (`False`) for positions that there are not.

    Example:
        >>> numbers = ops.reshape(ops.arange(1, 6), (1, 5, 1))
        >>> slot_inputs(numbers, 3, causal=True).numpy().tolist()
        [[[0, 0, 1], [2, 3, 4]]]
        >>> slot_inputs(numbers, 3, causal=False).numpy().tolist()
        [[[1, 2, 3], [4, 5, 0]]]
    """
    batch_size, length, channels = ops.shape(sequence)
    slots = number_of_slots(length, factor)
    if causal:
        # Positions after the last slot's belong to no slot yet.
        length = (slots - 1) * factor + 1
        sequence = sequence[:, :length]
    missing = slots * factor - length
    padding = (missing, 0) if causal else (0, missing)
    sequence = ops.pad(sequence, ((0, 0), padding, (0, 0)))
    return ops.reshape(sequence, (batch_size, slots, factor * channels))


def real_slots(padding_mask, factor, causal):
    """Mark the slots that hold a real token: `(B, T)` to `(B, N)`.

    Example:
        >>> mask = ops.array([[True, True, False, False, False, False, False]])
        >>> real_slots(mask, 3, causal=True).numpy().tolist()
        [[True, True, False]]
    """
    tokens = slot_inputs(ops.expand_dims(padding_mask, -1), factor, causal)
    return ops.any(tokens, axis=-1)


def visible_slots(query_positions, num_slots, factor):
    """Return which slots queries may see without looking ahead.

    Query i sees slot t if `c t <= i`.

    Args:
        query_positions: Integer tensor `(T,)`.
        num_slots: Integer or scalar tensor N.
        factor: Positive integer c.

    Returns:
        Boolean tensor `(T, N)`.

    Example:
        >>> visible_slots([2, 3], 3, factor=3).numpy().tolist()
        [[True, False, False], [True, True, False]]
    """
    ends = ops.expand_dims(positions_from(num_slots) * factor, 0)
    queries = ops.cast(query_positions, "int32")
    return ends <= ops.expand_dims(queries, 1)


def slots_of_ancestors(ancestors, num_slots, factor):
    """Return which alternatives of each slot a beam descends from.

    Args:
        ancestors: Integer tensor `(B, K, max_length)`: at each position the
            beam that a beam descends from.
        num_slots: Integer N.
        factor: Positive integer c.

    Returns:
        Boolean tensor `(B, 1, K, N * K)`.
    """
    beams, length = ancestors.shape[1:]
    ends = ops.minimum(positions_from(num_slots) * factor, length - 1)
    own = ops.equal(
        ops.expand_dims(ops.take(ancestors, ends, axis=2), -1),
        ops.arange(beams, dtype=ancestors.dtype),
    )
    return ops.reshape(own, (-1, 1, beams, num_slots * beams))


def latest_windows(latest, factor, index, ancestors=None):
    """Put what came before each new token beside it.

    Args:
        latest: Tensor `(B, (c - 1 + P) * K, C)`: c - 1 positions and then P new
            ones, each of K alternatives.
        factor: Positive integer c.
        index: Integer scalar tensor: the first new position.
        ancestors: Integer tensor `(B, K, max_length)`, or `None` where there
            are no alternatives; with them P is 1.

    Returns:
        Tensor `(B, P * K, c, C)`, in the order of the positions.
    """
    if ancestors is None:
        new = latest.shape[1] - factor + 1
        parts = [latest[:, shift : shift + new] for shift in range(factor)]
        return ops.stack(parts, axis=2)
    beams, length = ancestors.shape[1:]
    times = index + ops.arange(1 - factor, 0, dtype="int32")
    chosen = ops.take(ancestors, ops.clip(times, 0, length - 1), axis=2)
    own = ops.broadcast_to(
        ops.arange(beams, dtype=chosen.dtype)[None, :, None],
        (ops.shape(chosen)[0], beams, 1),
    )
    chosen = ops.concatenate([chosen, own], axis=2)
    places = chosen + beams * ops.arange(factor, dtype=chosen.dtype)
    places = ops.reshape(places, (-1, beams * factor, 1))
    found = ops.take_along_axis(latest, places, axis=1)
    return ops.reshape(found, (-1, beams, factor, latest.shape[2]))


def write_slots(memory, new, axis, factor, index, beams=1):
    """Write the slots that end at new positions into a memory.

    Args:
        memory: Tensor with an axis of N * K slots.
        new: Tensor as `memory` with an axis of P * K: what a slot would hold
            that ended at each new position.
        axis: Integer, the axis.
        factor: Positive integer c.
        index: Integer scalar tensor: the first new position.
        beams: Integer K. Defaults to `1`.

    Returns:
        Tensor as `memory`.
    """
    slots = positions_from(memory.shape[axis])
    number = slots // beams * factor - index
    ends = ops.logical_and(number >= 0, number * beams < new.shape[axis])
    last = new.shape[axis] - 1
    chosen = ops.take(
        new,
        ops.clip(number * beams + slots % beams, 0, last),
        axis=axis,
    )
    shape = [1] * len(memory.shape)
    shape[axis] = -1
    return ops.where(ops.reshape(ends, shape), chosen, memory)

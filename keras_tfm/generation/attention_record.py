"""What every head looked at while the hypotheses were written.

Shape letters: B batch, K beams, N hypotheses, T target length, H heads.
"""

from keras import ops
from keras import tree

from keras_tfm.ops.search import select_beams


def empty_record(weights, max_length):
    """Make room for the weights of every step.

    Args:
        weights: What `step` returned at one position.
        max_length: Integer T.

    Returns:
        The same structure, with zeros `(T, B, K, H, keys)`.
    """

    def empty(entry):
        return ops.repeat(ops.zeros_like(entry)[None], max_length, axis=0)

    return tree.map_structure(empty, _by_beam(weights))


def written_record(record, weights, index):
    """Write the weights of a step to their place."""

    def write(kept, entry):
        return ops.slice_update(kept, (index, 0, 0, 0, 0), entry[None])

    return tree.map_structure(write, record, _by_beam(weights))


def read_record(record, ancestors, real):
    """Follow the ancestors of each hypothesis through a record.

    Args:
        record: See `empty_record`.
        ancestors: Integer tensor `(B, N, T)`.
        real: Boolean tensor `(B, N, T)`, the positions to keep.

    Returns:
        The same structure, with tensors `(B, N, H, T, keys)`.
    """
    mask = ops.expand_dims(real, (-1, -2))

    def read(entry):
        by_row = ops.transpose(entry, (1, 0, 2, 3, 4))
        length, beams = by_row.shape[1:3]
        flat = ops.reshape(by_row, (-1, length * beams, *by_row.shape[3:]))
        time = ops.arange(length, dtype="int32") * beams
        places = ops.reshape(ancestors + time, (-1, real.shape[1] * length))
        found = select_beams(flat, places)
        found = ops.reshape(
            found, (-1, real.shape[1], length, *found.shape[2:])
        )
        found = ops.where(mask, found, 0.0)
        return ops.transpose(found, (0, 1, 3, 2, 4))

    return tree.map_structure(read, record)


def _by_beam(weights):
    """Bring weights to `(B, K, H, keys)`, the keys of a beam being its own."""

    def own(entry):
        # Of T * K cached tokens a beam sees one at each position.
        beams = entry.shape[2]
        shape = (*entry.shape[1:3], entry.shape[3] // beams, beams)
        return ops.sum(ops.reshape(entry, (-1, *shape)), axis=-1)

    def turn(entry):
        return ops.transpose(ops.cast(entry, "float32"), (0, 2, 1, 3))

    return {
        "decoder": tuple(turn(own(entry)) for entry in weights["decoder"]),
        "cross": tuple(turn(entry) for entry in weights["cross"]),
    }

"""Sequences of token ids: shifting, lengths, packed rows.

Shape letters: B batch, T length.
"""

from keras import ops


def shift_right(token_ids, start_id):
    """Put `start_id` in front and drop the last id: `(B, T)` to `(B, T)`.

    This is what a decoder reads while it learns to predict `token_ids`.

    Example:
        >>> shift_right([[5, 6, 7]], start_id=1).numpy().tolist()
        [[1, 5, 6]]
    """
    token_ids = ops.convert_to_tensor(token_ids)
    start = ops.full_like(token_ids[:, :1], start_id)
    return ops.concatenate([start, token_ids[:, :-1]], axis=1)


def sequence_lengths(padding_mask):
    """Count the real tokens of each row: mask `(B, T)` to int32 `(B,)`."""
    return ops.sum(ops.cast(padding_mask, "int32"), axis=-1)


def segment_positions(segment_ids):
    """Number the tokens of each segment of a packed row from 0.

    Args:
        segment_ids: Integer tensor `(B, T)`: 1, 2, … for the sequences of a
            row, which lie side by side, and 0 for padding.

    Returns:
        Int32 tensor `(B, T)`; padding is numbered like a segment of its own.

    Example:
        >>> segment_positions([[1, 1, 2, 2, 2, 0]]).numpy().tolist()
        [[0, 1, 0, 1, 2, 0]]
    """
    segment_ids = ops.cast(segment_ids, "int32")
    index = ops.arange(ops.shape(segment_ids)[1], dtype="int32")
    # A column of its own before the first token starts the first segment.
    before = ops.concatenate(
        [ops.full_like(segment_ids[:, :1], -1), segment_ids[:, :-1]], axis=1
    )
    starts = ops.where(ops.not_equal(segment_ids, before), index, 0)
    # The start of the latest segment: a running maximum over the row.
    seen = ops.expand_dims(index, 0) <= ops.expand_dims(index, 1)
    latest = ops.max(ops.where(seen, ops.expand_dims(starts, 1), 0), axis=-1)
    return index - latest

"""How many positions a row has in which several pairs are packed."""

from __future__ import annotations

import numpy as np

from keras_tfm.checks import check_positive_int
from keras_tfm.data.bucket_edges import Edge

# Rows are as long as this many pairs of the usual length, or the longest one.
_PAIRS_IN_A_ROW = 4
_MULTIPLE = 16


def row_room(lengths: np.ndarray, longest: int, tokens_per_batch: int) -> Edge:
    """Choose the room of a row so that both sides fill up together.

    The longer side has room for the longest pair and for four of the usual
    length, in a multiple of 16 positions; the other side for as many pairs of
    its own usual length.

    Args:
        lengths: Integer array `(2, pairs)`: tokens of the sources and of the
            targets, with what is added to them.
        longest: Positive integer. Pairs with a longer side are not counted.
        tokens_per_batch: Positive integer. No side has more room than this.

    Returns:
        Tuple (source positions, target positions) that all pairs fit into
        which are counted.

    Example:
        >>> row_room(np.array([[9, 11], [14, 16]]), 100, tokens_per_batch=4096)
        (43, 64)
    """
    short = lengths[:, lengths.max(axis=0) <= longest]
    if not short.size:
        return longest, longest
    totals = short.sum(axis=1)
    most = totals.max()
    for_longest = -(-short.max(axis=1) * most // totals)
    for_usual = _PAIRS_IN_A_ROW * most // short.shape[1]
    longer = -(-max(for_usual, *for_longest) // _MULTIPLE) * _MULTIPLE
    room = -(-longer * totals // most)
    source, target = np.minimum(room, tokens_per_batch).tolist()
    return source, target


def as_room(row_length: int | Edge, tokens_per_batch: int) -> Edge:
    """Return a room that was asked for as (source, target) positions.

    Raises:
        ValueError: If there are not one or two lengths, or one is not an
            integer from 1 to `tokens_per_batch`.
    """
    both = tuple(row_length) if np.ndim(row_length) else (row_length,) * 2
    if len(both) != 2:
        raise ValueError(
            "`row_length` must be a length or a pair of lengths (source, "
            f"target). Received: {row_length!r}."
        )
    room = tuple(check_positive_int("row_length", n) for n in both)
    if max(room) > tokens_per_batch:
        raise ValueError(
            "`row_length` must not exceed `tokens_per_batch`. Received: "
            f"row_length={row_length!r}, tokens_per_batch={tokens_per_batch}."
        )
    return room

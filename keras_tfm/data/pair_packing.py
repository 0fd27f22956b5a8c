"""Decide which pairs of sequences share a row, so that little is padding."""

from __future__ import annotations

import numpy as np

from keras_tfm.data.bucket_edges import Edge


def pack_pairs(
    source_lengths: np.ndarray, target_lengths: np.ndarray, room: Edge
) -> list[np.ndarray]:
    """Put pairs into rows that have room on both sides.

    Each row begins with the longest pair that is left, and then takes the pair
    that leaves the least room, again and again: best-fit decreasing in two
    dimensions. Equal lengths are taken in the order they come, so that the
    lengths alone decide what a row looks like.

    Args:
        source_lengths: Integer array `(pairs,)`, in tokens.
        target_lengths: Integer array `(pairs,)`, in tokens.
        room: (source, target), the tokens that a row has room for.

    Returns:
        List of rows, each an array of the indices of its pairs.

    Raises:
        ValueError: If a pair does not fit into a row of its own.

    Example:
        >>> lengths = np.array([5, 2, 3, 4])
        >>> [row.tolist() for row in pack_pairs(lengths, lengths, (7, 7))]
        [[0, 1], [3, 2]]
    """
    source_room, target_room = room
    too_long = (source_lengths > source_room) | (target_lengths > target_room)
    if too_long.any():
        worst = int(np.flatnonzero(too_long)[0])
        raise ValueError(
            f"Pair {worst + 1} has {source_lengths[worst]} and "
            f"{target_lengths[worst]} tokens, and a row has room for "
            f"{source_room} and {target_room}. Leave the pair out, or make the "
            "rows longer."
        )
    kinds = _Kinds(source_lengths, target_lengths)
    rows = []
    while (longest := kinds.longest()) is not None:
        row = []
        free = [source_room, target_room]
        best: int | None = longest
        while best is not None:
            row.append(kinds.take(best))
            free[0] -= int(kinds.source[best])
            free[1] -= int(kinds.target[best])
            best = kinds.best_fit(*free)
        rows.append(np.array(row))
    return rows


class _Kinds:
    """The pairs that are left, by their two lengths, the longest first."""

    def __init__(self, source: np.ndarray, target: np.ndarray) -> None:
        lengths = np.stack([source, target], axis=1)
        kinds, kind, counts = np.unique(
            lengths, axis=0, return_inverse=True, return_counts=True
        )
        order = np.argsort(-kinds.sum(axis=1), kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self.source, self.target = kinds[order].T
        self._left = counts[order]
        # The members of a kind lie side by side, in the order they came.
        self._members = np.argsort(rank[kind.ravel()], kind="stable")
        self._next = np.cumsum(self._left) - self._left
        self._first = 0

    def longest(self) -> int | None:
        while self._first < len(self._left) and not self._left[self._first]:
            self._first += 1
        return self._first if self._first < len(self._left) else None

    def best_fit(self, source_room: int, target_room: int) -> int | None:
        fits = np.flatnonzero(
            (self._left > 0)
            & (self.source <= source_room)
            & (self.target <= target_room)
        )
        if not len(fits):
            return None
        rest = np.maximum(
            source_room - self.source[fits], target_room - self.target[fits]
        )
        return int(fits[np.argmin(rest)])

    def take(self, kind: int) -> int:
        member = self._members[self._next[kind]]
        self._next[kind] += 1
        self._left[kind] -= 1
        return int(member)

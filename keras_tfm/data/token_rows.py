"""Many rows of token ids of their own lengths, in one flat array."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from keras_tfm.data.text_files import DataError


class TokenRows:
    """Rows of ids, each with the end id, one after the other in one array.

    Args:
        ids: Sequence of integer arrays `(length,)`, without the end.
        end_id: Integer.

    Attributes:
        flat: Int32 array of all rows.
        starts: Integer array `(rows,)`: where each row begins in `flat`.
        lengths: Integer array `(rows,)`, with the end.
    """

    def __init__(self, ids: Sequence[np.ndarray], end_id: int) -> None:
        end = np.array([end_id], np.int32)
        self.lengths = np.fromiter(map(len, ids), np.int64, len(ids)) + 1
        self.starts = np.cumsum(self.lengths) - self.lengths
        parts: list[np.ndarray] = []
        for row in ids:
            parts += (row, end)
        self.flat = np.concatenate(parts).astype(np.int32)

    def padded(
        self, pairs: np.ndarray, rows: int, length: int, pad_id: int
    ) -> np.ndarray:
        """Return the rows of `pairs` and rows of padding, int32."""
        padded = np.full((rows, length), pad_id, np.int32)
        real = np.arange(length) < self.lengths[pairs, None]
        places = self.starts[pairs, None] + np.arange(length)
        # Row by row, `real` picks the places and the positions alike.
        padded[: len(pairs)][real] = self.flat[places[real]]
        return padded

    def packed(
        self,
        rows: Sequence[np.ndarray],
        num_rows: int,
        length: int,
        pad_id: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of several entries side by side, and their segments.

        Args:
            rows: Sequence of integer arrays: which entries each row holds.
            num_rows: Integer, at least as many; the others are padding.
            length: Integer. Each row's entries must fit.
            pad_id: Integer.

        Returns:
            A pair of int32 arrays `(num_rows, length)`: the ids, and 1, 2, …
            for the entries of a row, with 0 for padding.
        """
        padded = np.full((num_rows, length), pad_id, np.int32)
        segments = np.zeros((num_rows, length), np.int32)
        for index, entries in enumerate(rows):
            starts, lengths = self.starts[entries], self.lengths[entries]
            ids = [
                self.flat[start : start + size]
                for start, size in zip(starts, lengths, strict=True)
            ]
            end = int(lengths.sum())
            padded[index, :end] = np.concatenate(ids)
            segments[index, :end] = np.repeat(
                np.arange(1, len(entries) + 1), lengths
            )
        return padded, segments

    def replaced(self, chosen: np.ndarray, other: TokenRows) -> TokenRows:
        """Return these rows, with those of another in the chosen places.

        Args:
            chosen: Boolean array `(rows,)`.
            other: As many rows.
        """
        rows = copy.copy(self)
        rows.lengths = np.where(chosen, other.lengths, self.lengths)
        rows.starts = np.where(
            chosen, other.starts + len(self.flat), self.starts
        )
        rows.flat = np.concatenate([self.flat, other.flat])
        return rows


def paired_rows(
    source_ids: Sequence[np.ndarray],
    target_ids: Sequence[np.ndarray],
    end_id: int,
) -> tuple[TokenRows, TokenRows]:
    """Make the rows of both sides.

    Args:
        source_ids: Sequence of integer arrays, without the end.
        target_ids: As many.
        end_id: Integer.

    Raises:
        DataError: If there are none, or not as many targets as sources.
    """
    if len(source_ids) != len(target_ids):
        raise DataError(
            f"{len(source_ids)} sources but {len(target_ids)} targets; "
            "give one target a source."
        )
    if not len(source_ids):
        raise DataError("There are no pairs to make batches of.")
    return TokenRows(source_ids, end_id), TokenRows(target_ids, end_id)

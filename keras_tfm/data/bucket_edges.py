"""Choose a few row lengths for pairs of sequences, to keep padding small."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Edge = tuple[int, int]

_MOST_CANDIDATES = 48
_MOST_ROUNDS = 8
# A shape more costs a compilation: it must save this share of the positions.
_WORTH_A_SHAPE = 0.02


def assign_buckets(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    edges: Sequence[Edge],
) -> np.ndarray:
    """Find the cheapest bucket that each pair fits into.

    Args:
        source_lengths: Integer array `(pairs,)`, in tokens.
        target_lengths: Integer array `(pairs,)`, in tokens.
        edges: Sequence of (source length, target length).

    Returns:
        Integer array `(pairs,)`: the index of the edge with the fewest
        positions that is long enough on both sides; -1 where none is.

    Example:
        >>> lengths = np.array([3, 7, 9])
        >>> assign_buckets(lengths, lengths, [(8, 8), (4, 4)]).tolist()
        [1, 0, -1]
    """
    table = np.asarray(edges, np.int64).reshape(-1, 2)
    bucket = np.full(len(source_lengths), -1, np.int64)
    # The widest first, so that each cheaper one that fits overrules it.
    for index in np.argsort(-table.sum(axis=1), kind="stable"):
        fits = (source_lengths <= table[index, 0]) & (
            target_lengths <= table[index, 1]
        )
        bucket[fits] = index
    return bucket


def batch_rows(
    num_pairs: int, edge: Edge, tokens_per_batch: int
) -> tuple[int, int]:
    """Return (rows of a batch, batches) for the pairs of one bucket.

    At most `tokens_per_batch` positions on the longer side, and as few rows
    of padding in the last batch as the number of batches allows.

    Example:
        >>> batch_rows(9, (10, 8), tokens_per_batch=80)
        (5, 2)
    """
    most = tokens_per_batch // max(edge)
    batches = -(-num_pairs // most)
    return -(-num_pairs // batches), batches


def choose_bucket_edges(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    tokens_per_batch: int,
    max_shapes: int = 4,
) -> list[Edge]:
    """Choose at most `max_shapes` edges that make the padding small.

    From equal shares of the pairs on, each length of each edge moves to the
    best of a list of candidates until none gains. One shape more is taken
    only if it saves 2 % of all positions.

    Args:
        source_lengths: Integer array `(pairs,)`, in tokens, at least one.
        target_lengths: Integer array `(pairs,)`, in tokens.
        tokens_per_batch: Positive integer, at least the longest length.
        max_shapes: Positive integer. Defaults to `4`.

    Returns:
        List of (source length, target length); every pair fits into one.
    """
    sources = _candidates(source_lengths)
    targets = _candidates(target_lengths)
    cells = _Cells(
        source_lengths, target_lengths, sources, targets, tokens_per_batch
    )
    best: list[Edge] = []
    best_cost = float("inf")
    for num_edges in range(1, max_shapes + 1):
        start = [
            (
                int(sources[max(len(sources) * rank // num_edges - 1, 0)]),
                int(targets[max(len(targets) * rank // num_edges - 1, 0)]),
            )
            for rank in range(1, num_edges + 1)
        ]
        edges, cost = _improve(cells, start, sources, targets)
        if cost < best_cost * (1 - _WORTH_A_SHAPE):
            best, best_cost = edges, cost
    return sorted(set(best))


class _Cells:
    """The pairs counted by candidate length, to price edges quickly."""

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        sources: np.ndarray,
        targets: np.ndarray,
        tokens_per_batch: int,
    ) -> None:
        cell = np.searchsorted(sources, source_lengths) * len(targets)
        cell += np.searchsorted(targets, target_lengths)
        full, self.counts = np.unique(cell, return_counts=True)
        self.sources = sources[full // len(targets)]
        self.targets = targets[full % len(targets)]
        self.tokens_per_batch = tokens_per_batch

    def cost(self, edges: Sequence[Edge]) -> int:
        """Count the positions of an epoch of full batches."""
        bucket = assign_buckets(self.sources, self.targets, edges)
        held = np.bincount(bucket, self.counts, len(edges)).astype(np.int64)
        total = 0
        for edge, num_pairs in zip(edges, held.tolist(), strict=True):
            if num_pairs:
                # Full rows: few pairs must not be split into tiny batches.
                rows = self.tokens_per_batch // max(edge)
                total += -(-num_pairs // rows) * rows * sum(edge)
        return total


def _candidates(lengths: np.ndarray) -> np.ndarray:
    distinct = np.unique(lengths)
    if len(distinct) <= _MOST_CANDIDATES:
        return distinct
    shares = np.linspace(0, 1, _MOST_CANDIDATES)
    by_count = np.quantile(lengths, shares[::2], method="higher")
    by_length = distinct[(shares * (len(distinct) - 1)).astype(int)][1::2]
    return np.unique(np.concatenate([by_count, by_length]).astype(np.int64))


def _improve(
    cells: _Cells,
    edges: list[Edge],
    sources: np.ndarray,
    targets: np.ndarray,
) -> tuple[list[Edge], int]:
    # The last edge holds the longest of both sides and stays.
    cost = cells.cost(edges)
    for _ in range(_MOST_ROUNDS):
        before = cost
        for index in range(len(edges) - 1):
            for side, choices in enumerate((sources, targets)):
                for choice in choices.tolist():
                    edge = list(edges[index])
                    edge[side] = choice
                    trial = [*edges]
                    trial[index] = (edge[0], edge[1])
                    trial_cost = cells.cost(trial)
                    if trial_cost < cost:
                        edges, cost = trial, trial_cost
        if cost == before:
            break
    return edges, cost

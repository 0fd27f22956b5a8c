"""Batches of sentence pairs in a few static shapes, in a repeatable order."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_whole_number
from keras_tfm.data.batch_description import counted
from keras_tfm.data.batch_description import describe_batches
from keras_tfm.data.bucket_edges import Edge
from keras_tfm.data.bucket_edges import assign_buckets
from keras_tfm.data.bucket_edges import batch_rows
from keras_tfm.data.bucket_edges import choose_bucket_edges
from keras_tfm.data.generated_dataset import generated_dataset
from keras_tfm.data.text_files import DataError
from keras_tfm.data.token_rows import paired_rows

Batch = tuple[dict[str, np.ndarray], np.ndarray]


class BucketedBatches:
    """Put pairs of about one length into batches of a few static shapes.

    A source row is the source's ids and the end id. The decoder reads the
    start id and the target's ids, and its labels are the target's ids and the
    end id. A pair goes to the smallest bucket that both of its rows fit into;
    all batches of a bucket have one shape, and rows of nothing but padding
    fill up its last batch. So XLA compiles one program for each entry of
    `shapes`.

    The order is a pure function of `seed` and the epoch. An interrupted
    training goes on with `dataset(start_step)` as if nothing had happened.

    Args:
        source_ids: Sequence of integer arrays `(length,)`, one a pair,
            without start and end.
        target_ids: Sequence of integer arrays, as many as `source_ids`.
        tokens_per_batch: Positive integer. The most positions that the longer
            side of a batch has, padding included. Longer pairs are dropped.
        bucket_edges: Sequence of row lengths, start or end id included: an
            integer for both sides, or a pair (source, target). Longer pairs
            are dropped. Defaults to `None`: at most `max_shapes` edges that
            make the padding small.
        max_shapes: Positive integer. Most buckets to choose when
            `bucket_edges` is `None`. Defaults to `4`.
        max_sequence_length: Positive integer. Pairs with a longer row (end id
            included) are dropped. Defaults to `None`, no limit but
            `tokens_per_batch`.
        start_id: Integer. Defaults to `1`.
        end_id: Integer. Defaults to `2`.
        pad_id: Integer. Defaults to `0`.
        seed: Non-negative integer. Defaults to `0`.

    Attributes:
        shapes: List of (rows, source length, target length).
        steps_per_epoch: Integer. Batches of an epoch, the same in each.
        padding_share: Float. Share of padding among all positions.
        tokens_per_step: Float. Real tokens of a batch, both sides together,
            on average.
        num_pairs: Integer. Pairs in the batches.
        num_dropped: Integer. Pairs left out because they are too long.

    Raises:
        DataError: If there are no pairs, not as many targets as sources, or
            all pairs are too long.
        ValueError: If a bucket edge is not positive or exceeds a limit.

    Example:
        >>> sources = [np.array([5, 6]), np.array([7])]
        >>> targets = [np.array([8]), np.array([9, 10, 11])]
        >>> batches = BucketedBatches(sources, targets, tokens_per_batch=8)
        >>> batches.shapes
        [(2, 3, 4)]
        >>> inputs, labels = next(iter(batches.dataset(shuffle=False)))
        >>> inputs["source_ids"].numpy().tolist()
        [[5, 6, 2], [7, 2, 0]]
        >>> inputs["target_ids"].numpy().tolist()
        [[1, 8, 0, 0], [1, 9, 10, 11]]
        >>> labels.numpy().tolist()
        [[8, 2, 0, 0], [9, 10, 11, 2]]
    """

    def __init__(
        self,
        source_ids: Sequence[np.ndarray],
        target_ids: Sequence[np.ndarray],
        tokens_per_batch: int,
        *,
        bucket_edges: Sequence[int | Edge] | None = None,
        max_shapes: int = 4,
        max_sequence_length: int | None = None,
        start_id: int = 1,
        end_id: int = 2,
        pad_id: int = 0,
        seed: int = 0,
    ) -> None:
        self.tokens_per_batch = check_positive_int(
            "tokens_per_batch", tokens_per_batch
        )
        check_positive_int("max_shapes", max_shapes)
        self.start_id = start_id
        self.pad_id = pad_id
        self.seed = check_whole_number("seed", seed)
        self._sources, self._targets = paired_rows(
            source_ids, target_ids, end_id
        )
        self._longest = self.tokens_per_batch
        if max_sequence_length is not None:
            check_positive_int("max_sequence_length", max_sequence_length)
            self._longest = min(self._longest, max_sequence_length)
        self._plan(bucket_edges, max_shapes)

    def _plan(
        self, bucket_edges: Sequence[int | Edge] | None, max_shapes: int
    ) -> None:
        sources = self._sources.lengths
        targets = self._targets.lengths
        short = (sources <= self._longest) & (targets <= self._longest)
        edges = []
        if bucket_edges is not None:
            edges = _checked_edges(bucket_edges, self._longest)
            self._longest = max(max(edge) for edge in edges)
        elif short.any():
            edges = choose_bucket_edges(
                sources[short],
                targets[short],
                self.tokens_per_batch,
                max_shapes,
            )
        bucket = np.where(short, assign_buckets(sources, targets, edges), -1)
        self.num_pairs = int((bucket >= 0).sum())
        self.num_dropped = len(bucket) - self.num_pairs
        if not self.num_pairs:
            shortest = int(np.maximum(sources, targets).min())
            raise DataError(
                f"All {self.num_dropped} pairs are too long: the shortest "
                f"takes {shortest} tokens with its end mark, and "
                f"{self._longest} fit. Raise `tokens_per_batch`, "
                "`max_sequence_length` or `bucket_edges`."
            )
        self.shapes: list[tuple[int, int, int]] = []
        self._members: list[np.ndarray] = []
        order = []
        for index, edge in enumerate(edges):
            members = np.flatnonzero(bucket == index)
            if len(members):
                rows, batches = batch_rows(
                    len(members), edge, self.tokens_per_batch
                )
                order += [(len(self.shapes), i) for i in range(batches)]
                self.shapes.append((rows, *edge))
                self._members.append(members)
        self._order = np.array(order)
        self.steps_per_epoch = len(order)
        kept = bucket >= 0
        real = int(sources[kept].sum() + targets[kept].sum())
        positions = sum(
            rows * (source + target)
            for rows, source, target in (self.shapes[i] for i, _ in order)
        )
        self.padding_share = 1 - real / positions
        self.tokens_per_step = real / self.steps_per_epoch

    def dataset(
        self,
        start_step: int = 0,
        state: dict[str, Any] | None = None,
        shuffle: bool = True,
        repeat: bool | None = None,
    ) -> tf.data.Dataset:
        """Return the batches as a `tf.data.Dataset`.

        Args:
            start_step: Non-negative integer. Number of batches to leave out
                first, over all epochs. Defaults to `0`.
            state: What `state` returned at that step; not needed here.
            shuffle: Boolean. A new order each epoch; `False` keeps the pairs
                of each bucket as they came. Defaults to `True`.
            repeat: Boolean. Whether it goes on without end. `False` gives
                each pair once. Defaults to the value of `shuffle`.

        Returns:
            Dataset of `({"source_ids", "target_ids"}, labels)`, int32 tensors
            `(rows, length)` in one of the `shapes`.
        """
        check_whole_number("start_step", start_step)
        repeat = shuffle if repeat is None else repeat
        rows = tf.TensorSpec((None, None), tf.int32)
        size = None if repeat else max(self.steps_per_epoch - start_step, 0)
        return generated_dataset(
            lambda: self._batches(start_step, shuffle, repeat),
            ({"source_ids": rows, "target_ids": rows}, rows),
            size,
        ).prefetch(tf.data.AUTOTUNE)

    def state(self, step: int) -> dict[str, Any]:
        """Return what `dataset` must know to go on: the step says it all."""
        return {}

    def describe(self) -> str:
        """Say in one line how many pairs, shapes and steps there are."""
        shapes = ", ".join(
            f"{rows}×({source}+{target})"
            for rows, source, target in self.shapes
        )
        return describe_batches(
            self.num_pairs,
            self.num_dropped,
            str(self._longest),
            f"{counted(len(self.shapes), 'shape')} {shapes}",
            self.steps_per_epoch,
            self.padding_share,
        )

    def _batches(
        self, start_step: int, shuffle: bool, repeat: bool
    ) -> Iterator[Batch]:
        epoch, step = divmod(start_step, self.steps_per_epoch)
        while repeat or epoch == 0:
            order, members = self._epoch(epoch if shuffle else None)
            for bucket, index in order[step:].tolist():
                rows, source_length, target_length = self.shapes[bucket]
                pairs = members[bucket][index * rows : (index + 1) * rows]
                yield self._batch(pairs, rows, source_length, target_length)
            epoch, step = epoch + 1, 0

    def _epoch(self, epoch: int | None) -> tuple[np.ndarray, list[np.ndarray]]:
        if epoch is None:
            return self._order, self._members
        random = np.random.default_rng([self.seed, epoch])
        members = [random.permutation(pairs) for pairs in self._members]
        return random.permutation(self._order), members

    def _batch(
        self,
        pairs: np.ndarray,
        rows: int,
        source_length: int,
        target_length: int,
    ) -> Batch:
        sources = self._sources.padded(pairs, rows, source_length, self.pad_id)
        labels = self._targets.padded(pairs, rows, target_length, self.pad_id)
        inputs = np.full_like(labels, self.pad_id)
        inputs[: len(pairs), 0] = self.start_id
        # The end mark of a shorter row must not move in.
        last = self._targets.lengths[pairs, None]
        inputs[: len(pairs), 1:] = np.where(
            np.arange(1, target_length) < last,
            labels[: len(pairs), :-1],
            self.pad_id,
        )
        return {"source_ids": sources, "target_ids": inputs}, labels


def _checked_edges(
    bucket_edges: Sequence[int | Edge], longest: int
) -> list[Edge]:
    edges = set()
    for edge in bucket_edges:
        both = tuple(edge) if np.ndim(edge) else (edge, edge)
        if len(both) != 2:
            raise ValueError(
                "An entry of `bucket_edges` must be a length or a pair of "
                f"lengths (source, target). Received: {edge!r}."
            )
        source, target = (check_positive_int("bucket_edges", n) for n in both)
        if max(source, target) > longest:
            raise ValueError(
                "An entry of `bucket_edges` must not be longer than "
                "`tokens_per_batch` and `max_sequence_length`. "
                f"Received: {edge!r}; at most {longest} fit."
            )
        edges.add((source, target))
    if not edges:
        raise ValueError("`bucket_edges` must hold a length. Received none.")
    return sorted(edges)

"""Batches of one shape whose rows hold several sentence pairs each."""

from __future__ import annotations

from collections.abc import Callable
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
from keras_tfm.data.generated_dataset import generated_dataset
from keras_tfm.data.pair_packing import pack_pairs
from keras_tfm.data.row_room import as_room
from keras_tfm.data.row_room import row_room
from keras_tfm.data.text_files import DataError
from keras_tfm.data.token_rows import TokenRows
from keras_tfm.data.token_rows import paired_rows

Batch = tuple[dict[str, np.ndarray], np.ndarray]
Ids = Sequence[np.ndarray]
Resample = Callable[[int], tuple[Ids, Ids]]

_INPUTS = ("source_ids", "target_ids", "source_segments", "target_segments")


class PackedBatches:
    """Put several pairs into each row; all batches have one shape.

    A row holds the sources of a few pairs, each with its end id, and beside it
    the targets as the decoder reads them, each after a start id of its own. The
    segments say which pair a token belongs to: 1, 2, … and 0 for padding. With
    them attention stays inside a pair and positions start anew (see
    `keras_tfm.models.packed_model`), so that a pair teaches the same as alone.
    XLA compiles one program for the whole training.

    Pairs are packed anew in each epoch. The order is a pure function of `seed`
    and the epoch; an interrupted training goes on with
    `dataset(step, state(step))` as if nothing had happened.

    Args:
        source_ids: Sequence of integer arrays `(length,)`, one a pair,
            without start and end.
        target_ids: Sequence of integer arrays, as many as `source_ids`.
        tokens_per_batch: Positive integer. The most positions that the longer
            side of a batch has.
        row_length: Positive integer, or a pair (source, target): the positions
            of a row, start or end ids included. Longer pairs are dropped.
            Defaults to `None`: what `row_room` chooses, enough for the longest
            pair.
        max_sequence_length: Positive integer. Pairs with a longer side (end id
            included) are dropped. Defaults to `None`, no limit but the row.
        resample: Function of an epoch, counted from 0, that returns other
            source and target ids of the same pairs, such as those of a
            `SubwordSampler`. A pair that has grown too long keeps its first
            ids. Defaults to `None`: the same ids in each epoch.
        start_id: Integer. Defaults to `1`.
        end_id: Integer. Defaults to `2`.
        pad_id: Integer. Defaults to `0`.
        seed: Non-negative integer. Defaults to `0`.

    Attributes:
        shapes: List of one tuple (rows, source length, target length).
        steps_per_epoch: Integer. Batches of an epoch; with `resample` a few
            more or less.
        padding_share: Float. Share of padding among all positions.
        tokens_per_step: Float. Real tokens of a batch, both sides together,
            on average.
        num_pairs: Integer. Pairs in the batches.
        num_dropped: Integer. Pairs left out because they are too long.

    Raises:
        DataError: If there are no pairs, not as many targets as sources, or
            all pairs are too long.
        ValueError: If a length is not positive or exceeds `tokens_per_batch`.

    Example:
        >>> sources = [np.array([5, 6]), np.array([7])]
        >>> targets = [np.array([8]), np.array([9, 10])]
        >>> batches = PackedBatches(sources, targets, 6, row_length=6)
        >>> inputs, labels = next(iter(batches.dataset(shuffle=False)))
        >>> inputs["source_ids"].numpy().tolist()
        [[7, 2, 5, 6, 2, 0]]
        >>> inputs["source_segments"].numpy().tolist()
        [[1, 1, 2, 2, 2, 0]]
        >>> inputs["target_ids"].numpy().tolist()
        [[1, 9, 10, 1, 8, 0]]
        >>> labels.numpy().tolist()
        [[9, 10, 2, 8, 2, 0]]
    """

    def __init__(
        self,
        source_ids: Ids,
        target_ids: Ids,
        tokens_per_batch: int,
        *,
        row_length: int | Edge | None = None,
        max_sequence_length: int | None = None,
        resample: Resample | None = None,
        start_id: int = 1,
        end_id: int = 2,
        pad_id: int = 0,
        seed: int = 0,
    ) -> None:
        self.tokens_per_batch = check_positive_int(
            "tokens_per_batch", tokens_per_batch
        )
        self.start_id = start_id
        self.end_id = end_id
        self.pad_id = pad_id
        self.seed = check_whole_number("seed", seed)
        self._resample = resample
        self._sources, self._targets = paired_rows(
            source_ids, target_ids, end_id
        )
        lengths = np.stack([self._sources.lengths, self._targets.lengths])
        longest = self.tokens_per_batch
        if max_sequence_length is not None:
            check_positive_int("max_sequence_length", max_sequence_length)
            longest = min(longest, max_sequence_length)
        if row_length is None:
            self._room = row_room(lengths, longest, self.tokens_per_batch)
            fit = (longest,)
        else:
            self._room = as_room(row_length, self.tokens_per_batch)
            fit = np.minimum(self._room, longest).tolist()
        self._limit = "+".join(str(n) for n in dict.fromkeys(fit))
        self._limits = np.minimum(self._room, longest)
        kept = (lengths <= self._limits[:, None]).all(axis=0)
        self._pairs = np.flatnonzero(kept)
        self.num_pairs = len(self._pairs)
        self.num_dropped = len(kept) - self.num_pairs
        if not self.num_pairs:
            raise DataError(
                f"All {self.num_dropped} pairs are too long: the shortest "
                f"takes {lengths.max(axis=0).min()} tokens with its end mark, "
                f"and {self._limit} fit. Raise `tokens_per_batch`, "
                "`max_sequence_length` or `row_length`."
            )
        rows = len(self._packed(self._sources, self._targets, self._pairs))
        # Not more rows than there are, in a set smaller than a batch.
        per_batch = min(self.tokens_per_batch // max(self._room), rows)
        self.shapes = [(per_batch, *self._room)]
        self.steps_per_epoch = -(-rows // per_batch)
        real = int(lengths[:, kept].sum())
        positions = self.steps_per_epoch * per_batch * sum(self._room)
        self.padding_share = 1 - real / positions
        self.tokens_per_step = real / self.steps_per_epoch
        self._epoch_starts = {0: 0}

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
            state: What `state` returned at that step. It is needed with
                `resample`, whose epochs are not all as long. Defaults to
                `None`.
            shuffle: Boolean. A new order and other neighbours each epoch;
                `False` keeps the rows as they were packed.
                Defaults to `True`.
            repeat: Boolean. Whether it goes on without end. `False` gives
                each pair once. Defaults to the value of `shuffle`.

        Returns:
            Dataset of `({"source_ids", "target_ids", "source_segments",
            "target_segments"}, labels)`, int32 tensors of the one shape.

        Raises:
            ValueError: If the state is missing, or of a later step.
        """
        check_whole_number("start_step", start_step)
        repeat = shuffle if repeat is None else repeat
        epoch, skipped = self._place(start_step, state)
        rows, source_length, target_length = self.shapes[0]
        source = tf.TensorSpec((rows, source_length), tf.int32)
        target = tf.TensorSpec((rows, target_length), tf.int32)
        size = None
        if not repeat:
            packed = self._epoch(0, shuffle)[2] if epoch == 0 else []
            size = max(-(-len(packed) // rows) - skipped, 0)
        return generated_dataset(
            lambda: self._batches(epoch, skipped, start_step, shuffle, repeat),
            (dict(zip(_INPUTS, (source, target) * 2, strict=True)), target),
            size,
        ).prefetch(tf.data.AUTOTUNE)

    def state(self, step: int) -> dict[str, Any]:
        """Return what `dataset` must know to go on after `step` batches.

        The step must have been reached by the latest dataset.
        """
        # A copy: the thread that reads ahead may begin an epoch meanwhile.
        starts = self._epoch_starts.copy().items()
        start, epoch = max((s, e) for e, s in starts if s <= step)
        return {"epoch": epoch, "epoch_start": start}

    def describe(self) -> str:
        """Say in one line how many pairs, rows and steps there are."""
        rows, source, target = self.shapes[0]
        return describe_batches(
            self.num_pairs,
            self.num_dropped,
            self._limit,
            f"packed into {counted(rows, 'row')} of {source}+{target}",
            self.steps_per_epoch,
            self.padding_share,
        )

    def _place(
        self, start_step: int, state: dict[str, Any] | None
    ) -> tuple[int, int]:
        if state is not None:
            epoch, start = state["epoch"], state["epoch_start"]
            if start > start_step:
                raise ValueError(
                    f"The state is of an epoch that starts at step {start}, "
                    f"after step {start_step}. Give the state of that step."
                )
            self._epoch_starts = {epoch: start}
            return epoch, start_step - start
        if self._resample is not None and start_step:
            raise ValueError(
                "With `resample` epochs are not all as long: give the `state` "
                f"of step {start_step}."
            )
        epoch, skipped = divmod(start_step, self.steps_per_epoch)
        self._epoch_starts = {epoch: start_step - skipped}
        return epoch, skipped

    def _batches(
        self, epoch: int, skipped: int, step: int, shuffle: bool, repeat: bool
    ) -> Iterator[Batch]:
        start = step - skipped
        while repeat or epoch == 0:
            self._epoch_starts[epoch] = start
            sources, targets, rows = self._epoch(epoch, shuffle)
            size = self.shapes[0][0]
            begins = range(0, len(rows), size)
            for begin in begins[skipped:]:
                yield self._batch(sources, targets, rows[begin : begin + size])
            # An older state may be several epochs back.
            epoch, start = epoch + 1, start + len(begins)
            skipped = max(skipped - len(begins), 0)

    def _epoch(
        self, epoch: int, shuffle: bool
    ) -> tuple[TokenRows, TokenRows, list[np.ndarray]]:
        sources, targets = self._ids(epoch)
        if not shuffle:
            return sources, targets, self._packed(sources, targets, self._pairs)
        random = np.random.default_rng([self.seed, epoch])
        pairs = random.permutation(self._pairs)
        rows = self._packed(sources, targets, pairs)
        # The longest come first in a row and among the rows; not in a batch.
        order = random.permutation(len(rows))
        return sources, targets, [random.permutation(rows[i]) for i in order]

    def _ids(self, epoch: int) -> tuple[TokenRows, TokenRows]:
        if self._resample is None:
            return self._sources, self._targets
        usual = (self._sources, self._targets)
        sampled = [TokenRows(i, self.end_id) for i in self._resample(epoch)]
        if {len(side.lengths) for side in sampled} != {len(usual[0].lengths)}:
            raise DataError(
                f"`resample` must return a row for each of the "
                f"{len(usual[0].lengths)} pairs, on both sides."
            )
        lengths = np.stack([side.lengths for side in sampled])
        grown = lengths > self._limits[:, None]
        return tuple(
            new.replaced(grown.any(axis=0), old)
            for new, old in zip(sampled, usual, strict=True)
        )

    def _packed(
        self, sources: TokenRows, targets: TokenRows, pairs: np.ndarray
    ) -> list[np.ndarray]:
        rows = pack_pairs(
            sources.lengths[pairs], targets.lengths[pairs], self._room
        )
        return [pairs[row] for row in rows]

    def _batch(
        self, sources: TokenRows, targets: TokenRows, rows: list[np.ndarray]
    ) -> Batch:
        size, source_length, target_length = self.shapes[0]
        source_ids, source_segments = sources.packed(
            rows, size, source_length, self.pad_id
        )
        labels, target_segments = targets.packed(
            rows, size, target_length, self.pad_id
        )
        # Each target is read after a start id, and without its end id.
        target_ids = np.roll(labels, 1, axis=1)
        before = np.roll(target_segments, 1, axis=1)
        before[:, 0] = 0
        target_ids[target_segments != before] = self.start_id
        target_ids[target_segments == 0] = self.pad_id
        arrays = (source_ids, target_ids, source_segments, target_segments)
        return dict(zip(_INPUTS, arrays, strict=True)), labels

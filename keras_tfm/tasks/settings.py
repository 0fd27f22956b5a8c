"""The settings of a training, as plain data that is saved with the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share
from keras_tfm.checks import check_whole_number
from keras_tfm.training.optimizers import OPTIMIZERS
from keras_tfm.training.optimizers import make_optimizer
from keras_tfm.training.schedules import InverseSquareRoot

BATCHINGS = ("packed", "buckets")


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How to train: batches, learning rate, optimizer, loss, averages.

    Attributes:
        batching: `"packed"`: several pairs share a row and XLA compiles one
            program; or `"buckets"`: a pair a row, in a few batch shapes.
        tokens_per_batch: Positive integer, positions of a batch on the longer
            side, padding included.
        row_length: Positive integer, positions of a packed row; `None` for
            room for the longest pair and four of the usual length, on each
            side for its own.
        max_shapes: Positive integer. Different shapes of buckets at most; each
            is compiled once.
        max_sequence_length: Positive integer, in tokens with the end, or `None`
            for no limit but the batch. Longer pairs are left out.
        subword_dropout: Float in [0, 1). Share of the merges that subwords
            leave out, other ones in each epoch; for packed batches of BPE.
        bidirectional_epochs: Non-negative integer. Epochs at the beginning that
            turn half of the pairs around, see `BothDirections`; for packed
            batches and one vocabulary.
        optimizer: `"adam"`, `"adamw"` or `"muon"`, see `make_optimizer`.
        peak: Positive float, the highest learning rate.
        warmup_steps: Positive integer, in updates, until the peak.
        decay_steps: Positive integer: the rate falls to almost 0 along a cosine
            by then. `None` falls with `1 / sqrt(step)` instead.
        beta_2: Float in [0, 1), of Adam.
        weight_decay: Float in [0, 1), not for `"adam"`.
        clip_norm: Positive float, the largest norm of a gradient, or `None`.
        accumulation_steps: Positive integer. Packed batches that make one
            update together; the loss is the mean over the tokens of all.
        label_smoothing: Float in [0, 1).
        ema_momentum: Float in [0, 1), of the moving average of the weights that
            the trained model gets; 0 for the last weights.
        average_last: Positive integer: the trained model gets the mean of that
            many snapshots of the weights; 0 for the last weights.
        snapshot_steps: Positive integer, updates between two snapshots, or
            `None` for an epoch.
        seed: Non-negative integer, of the order of the batches.
    """

    batching: str = "packed"
    tokens_per_batch: int = 4096
    row_length: int | None = None
    max_shapes: int = 4
    max_sequence_length: int | None = None
    subword_dropout: float = 0.0
    bidirectional_epochs: int = 0
    optimizer: str = "adam"
    peak: float = 2e-3
    warmup_steps: int = 1000
    decay_steps: int | None = None
    beta_2: float = 0.98
    weight_decay: float = 0.0
    clip_norm: float | None = None
    accumulation_steps: int = 1
    label_smoothing: float = 0.1
    ema_momentum: float = 0.0
    average_last: int = 0
    snapshot_steps: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("batching", self.batching, BATCHINGS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        for name in (
            "tokens_per_batch",
            "max_shapes",
            "warmup_steps",
            "accumulation_steps",
        ):
            check_positive_int(name, getattr(self, name))
        for name in ("row_length", "max_sequence_length", "snapshot_steps"):
            if getattr(self, name) is not None:
                check_positive_int(name, getattr(self, name))
        for name in (
            "subword_dropout",
            "beta_2",
            "weight_decay",
            "label_smoothing",
            "ema_momentum",
        ):
            check_share(name, getattr(self, name))
        check_positive("peak", self.peak)
        if self.clip_norm is not None:
            check_positive("clip_norm", self.clip_norm)
        for name in ("bidirectional_epochs", "average_last", "seed"):
            check_whole_number(name, getattr(self, name))
        self._check_together()

    def _check_together(self) -> None:
        if self.decay_steps is not None and (
            check_positive_int("decay_steps", self.decay_steps)
            <= self.warmup_steps
        ):
            raise ValueError(
                "`decay_steps` must be larger than `warmup_steps`. Received: "
                f"decay_steps={self.decay_steps}, "
                f"warmup_steps={self.warmup_steps}."
            )
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError(
                'Adam decays no weights. Received: optimizer="adam", '
                f'weight_decay={self.weight_decay}. Use optimizer="adamw".'
            )
        if self.ema_momentum and self.average_last:
            raise ValueError(
                "The model gets one average. Received: ema_momentum="
                f"{self.ema_momentum}, average_last={self.average_last}. "
                "Leave one of them at 0."
            )
        if self.batching == "packed":
            return
        for name, least in (
            ("subword_dropout", 0),
            ("bidirectional_epochs", 0),
            ("accumulation_steps", 1),
        ):
            if getattr(self, name) > least:
                raise ValueError(
                    f"`{name}` is for packed batches. Received: "
                    f'{name}={getattr(self, name)}, batching="buckets". Use '
                    'batching="packed".'
                )

    def learning_rate(self) -> keras.optimizers.schedules.LearningRateSchedule:
        """Make the schedule."""
        if self.decay_steps is None:
            return InverseSquareRoot(self.peak, self.warmup_steps)
        return keras.optimizers.schedules.CosineDecay(
            self.peak / self.warmup_steps,
            self.decay_steps - self.warmup_steps,
            alpha=0.01,
            warmup_target=self.peak,
            warmup_steps=self.warmup_steps,
        )

    def make_optimizer(
        self, variables: Sequence[Any]
    ) -> keras.optimizers.Optimizer:
        """Make the optimizer, built for the variables it is to train."""
        return make_optimizer(
            self.optimizer,
            self.learning_rate(),
            variables,
            beta_2=self.beta_2,
            weight_decay=self.weight_decay,
            clip_norm=self.clip_norm,
            accumulation_steps=self.accumulation_steps,
            ema_momentum=self.ema_momentum,
        )

"""The settings of a training, as plain data that is saved with the model."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras

from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share
from keras_tfm.checks import check_whole_number
from keras_tfm.training.schedules import InverseSquareRoot


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How to train: batches, learning rate, loss, and when to stop.

    Attributes:
        tokens_per_batch: Positive integer, positions of a batch on the longer
            side, padding included.
        max_shapes: Positive integer. Different batch shapes at most; each is
            compiled once.
        max_sequence_length: Positive integer, in tokens with the end, or `None`
            for no limit but the batch. Longer pairs are left out.
        peak: Positive float, the highest learning rate.
        warmup_steps: Positive integer, in updates, until the peak.
        decay_steps: Positive integer: the rate falls to almost 0 along a cosine
            by then. `None` falls with `1 / sqrt(step)` instead.
        label_smoothing: Float in [0, 1).
        ema_momentum: Float in [0, 1), of the moving average of the weights that
            the trained model gets; 0 for the last weights.
        seed: Non-negative integer, of the order of the batches.
    """

    tokens_per_batch: int = 4096
    max_shapes: int = 4
    max_sequence_length: int | None = None
    peak: float = 2e-3
    warmup_steps: int = 1000
    decay_steps: int | None = None
    label_smoothing: float = 0.1
    ema_momentum: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive_int("tokens_per_batch", self.tokens_per_batch)
        check_positive_int("max_shapes", self.max_shapes)
        check_positive("peak", self.peak)
        check_positive_int("warmup_steps", self.warmup_steps)
        check_share("label_smoothing", self.label_smoothing)
        check_share("ema_momentum", self.ema_momentum)
        check_whole_number("seed", self.seed)
        if self.decay_steps is not None and (
            check_positive_int("decay_steps", self.decay_steps)
            <= self.warmup_steps
        ):
            raise ValueError(
                "`decay_steps` must be larger than `warmup_steps`. Received: "
                f"decay_steps={self.decay_steps}, "
                f"warmup_steps={self.warmup_steps}."
            )

    def optimizer(self) -> keras.optimizers.Optimizer:
        """Make Adam with the schedule and the moving average asked for."""
        if self.decay_steps is None:
            rate = InverseSquareRoot(self.peak, self.warmup_steps)
        else:
            rate = keras.optimizers.schedules.CosineDecay(
                self.peak / self.warmup_steps,
                self.decay_steps - self.warmup_steps,
                alpha=0.01,
                warmup_target=self.peak,
                warmup_steps=self.warmup_steps,
            )
        average: dict[str, Any] = {}
        if self.ema_momentum:
            average = {"use_ema": True, "ema_momentum": self.ema_momentum}
        return keras.optimizers.Adam(
            rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9, **average
        )

"""The progress of a training: a bar on a terminal, lines in a log."""

from __future__ import annotations

import time
from typing import Any

import keras
from rich.progress import BarColumn
from rich.progress import Progress
from rich.progress import TextColumn

from keras_tfm.cli.console import make_console
from keras_tfm.cli.console import say
from keras_tfm.cli.meter import Meter
from keras_tfm.cli.meter import duration
from keras_tfm.training.metric_sums import MetricSums
from keras_tfm.training.model_variables import sync_variables

_BAR_SECONDS = 0.5
_LINE_SECONDS = 10.0
# Loss and accuracy are means over this many steps, and not over the epoch; at
# the end over what there is.
_MEAN_STEPS = 50
_LAST_MEAN_STEPS = 10


class TrainingProgress(keras.callbacks.Callback):
    """Show time left, steps, tokens a second, loss and accuracy.

    On a terminal it is a bar; anywhere else a line every ten seconds.

    Args:
        steps: Positive integer, the updates to stop at, or `None`.
        max_minutes: Positive float, the time to stop at, or `None`.
        tokens_per_batch: Float, the real tokens of a batch, on average.
        num_programs: Positive integer, how many programs XLA compiles.
    """

    def __init__(
        self,
        steps: int | None,
        max_minutes: float | None,
        tokens_per_batch: float,
        num_programs: int,
    ) -> None:
        super().__init__()
        self.steps = steps
        self.max_seconds = None if max_minutes is None else 60 * max_minutes
        self.tokens_per_batch = tokens_per_batch
        self.num_programs = num_programs
        self._means = ""
        self._in_mean = 0
        self._sums: MetricSums | None = None
        self._shown_at = 0.0
        # Several batches make an update where gradients are accumulated.
        self._batches_a_step = 1
        self._num_batches = 0
        self._validated = False
        self._bar: Progress | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._sums = MetricSums(self.model)
        # With float16 it is wrapped, to scale the loss.
        optimizer = self.model.optimizer
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        self._batches_a_step = optimizer.gradient_accumulation_steps or 1
        # Its first variable counts batches, `iterations` counts updates.
        self._num_batches = int(optimizer.variables[0])
        now = time.monotonic()
        self._meter = Meter(
            int(optimizer.iterations),
            now,
            self.steps,
            self.max_seconds,
            self._batches_a_step * self.tokens_per_batch,
            self.num_programs,
        )
        self._shown_at = now
        first = "compiling: the first step of each batch shape takes a while"
        console = make_console()
        if not console.is_terminal:
            say(first)
            return
        self._bar = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            refresh_per_second=4,
        )
        self._task = self._bar.add_task(first, total=1.0)
        self._bar.start()

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if self._sums is not None:
            self._sums.start()

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        now = time.monotonic()
        self._num_batches += 1
        if self._num_batches % self._batches_a_step == 0:
            self._meter.add(now, self._validated)
            self._validated = False
        self._in_mean += 1
        seconds = _LINE_SECONDS if self._bar is None else _BAR_SECONDS
        if now - self._shown_at >= seconds:
            self._shown_at = now
            self._take_means()
            self._show()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # Keras resets its metrics after this, or it is the end. An epoch may
        # have fewer batches than a mean should.
        batches = self.params.get("steps") or _LAST_MEAN_STEPS
        self._take_means(min(batches, _LAST_MEAN_STEPS))
        self._forget()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self.close()
        self._shown_at = time.monotonic()
        say(self.line())

    def show_result(self, line: str) -> None:
        """Show what a validation, after the step that ends now, has found."""
        self._validated = True
        if self._bar is None:
            say(line)
        else:
            self._bar.console.print(line, soft_wrap=True)  # Above the bar.

    def close(self) -> None:
        """Take the bar away; needed after an error, harmless otherwise."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def line(self) -> str:
        """Return what is shown, in one line."""
        meter = self._meter
        steps = f"/{meter.steps:,}" if meter.steps else ""
        left = meter.seconds_left()
        speed = meter.tokens_per_second()
        parts = [
            f"step {meter.step:,}{steps}",
            "" if left is None else f"{duration(left)} left",
            f"{speed:,.0f} tokens/s" if speed else "",
            self._means,
        ]
        return " · ".join(part for part in parts if part)

    def _forget(self) -> None:
        self._in_mean = 0
        if self._sums is not None:
            self._sums.clear()

    def _take_means(self, fewest: int | None = None) -> None:
        if self._sums is None:
            return
        # The metrics are only read: they belong to the log, too.
        sync_variables(self.model)
        self._sums.stop()
        if self._in_mean < (fewest or _MEAN_STEPS) and self._means:
            return
        means = self._sums.means()
        if "loss" in means:
            self._means = f"loss {means['loss']:.4f}"
        if "token_accuracy" in means:
            self._means += f" · accuracy {means['token_accuracy']:.1%}"
        if self._in_mean >= _MEAN_STEPS:
            self._forget()

    def _show(self) -> None:
        if self._bar is None:
            say(self.line())
        else:
            self._bar.update(
                self._task,
                completed=self._meter.share(),
                description=self.line(),
            )

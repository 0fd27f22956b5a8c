"""Stop a training by its number of updates, by the clock, or when it fails."""

import math
import time

import keras

from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.training.model_variables import sync_variables


class StopAfterSteps(keras.callbacks.Callback):
    """Stop once the optimizer has made `steps` updates, over all sessions.

    Args:
        steps: Positive integer, in updates.
    """

    def __init__(self, steps):
        super().__init__()
        self.steps = check_positive_int("steps", steps)
        self._done = 0
        self._last_batch = -1

    def on_train_begin(self, logs=None):
        self._done = int(self.model.optimizer.iterations)

    def on_epoch_begin(self, epoch, logs=None):
        self._last_batch = -1

    def on_train_batch_end(self, batch, logs=None):
        # Several updates at once with `steps_per_execution`; fewer than there
        # are batches where gradients are accumulated. The optimizer is asked
        # only when it may be time: the JAX backend must hand over its state.
        self._done += batch - self._last_batch
        self._last_batch = batch
        if self._done >= self.steps:
            sync_variables(self.model)
            self._done = int(self.model.optimizer.iterations)
            self.model.stop_training |= self._done >= self.steps


class StopAfterMinutes(keras.callbacks.Callback):
    """Stop a session once it has trained for `minutes`, compiling included.

    Args:
        minutes: Positive float.
    """

    def __init__(self, minutes):
        super().__init__()
        self.minutes = check_positive("minutes", minutes)
        self._began = None

    def on_train_begin(self, logs=None):
        self._began = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        if time.monotonic() - self._began >= 60 * self.minutes:
            self.model.stop_training = True


class FailOnNaN(keras.callbacks.Callback):
    """Raise an error once the loss is no number.

    Unlike `keras.callbacks.TerminateOnNaN`, which ends a training as if it were
    done: callbacks that come later would then save its weights.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
    """

    def on_train_batch_end(self, batch, logs=None):
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            step = int(self.model.optimizer.iterations)
            raise FloatingPointError(
                f"The loss is {loss} after update {step}. The checkpoint "
                "before is kept. Train anew with a lower learning rate, or a "
                "longer warm-up."
            )

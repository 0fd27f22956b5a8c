"""The base of callbacks that act every so many updates of the optimizer."""

import abc

import keras

from keras_tfm.checks import check_positive_int
from keras_tfm.training.model_variables import kept_values


class PeriodicCallback(keras.callbacks.Callback, abc.ABC):
    """Abstract: act when `optimizer.iterations` passes a multiple.

    Updates are counted over all sessions: a training that was resumed acts at
    the same steps as one that was not. A subclass fills in `act`.

    Args:
        every_steps: Positive integer, in updates.

    Attributes:
        acted: Boolean. Whether it acted after the last batch.
    """

    def __init__(self, every_steps):
        super().__init__()
        self.every_steps = check_positive_int("every_steps", every_steps)
        self.acted = False
        self._step = 0
        self._next_step = 0
        self._last_batch = -1

    @abc.abstractmethod
    def act(self, step):
        """Do what is due. The model's variables can be read and assigned.

        The model's metrics are given back what they held.

        Args:
            step: Integer, the number of updates made.
        """

    def begin(self, step):
        """Prepare for a training that goes on from `step`; here, nothing."""

    def on_train_begin(self, logs=None):
        self.acted = False
        self._step = int(self.model.optimizer.iterations)
        self._plan()
        self.begin(self._step)

    def on_epoch_begin(self, epoch, logs=None):
        self._last_batch = -1

    def on_train_batch_end(self, batch, logs=None):
        self.acted = False
        # `self.model` is touched only when it may be time: each time makes the
        # JAX backend hand over its state. There are at least as many batches as
        # updates.
        self._step += batch - self._last_batch
        self._last_batch = batch
        if self._step < self._next_step:
            return
        self._step = int(self.model.optimizer.iterations)
        if self._step < self._next_step:
            return
        self._plan()
        with kept_values(self.model, self.model.metrics_variables):
            self.act(self._step)
        self.acted = True

    def _plan(self):
        # With `steps_per_execution` a multiple may be jumped over.
        done = self._step // self.every_steps
        self._next_step = (done + 1) * self.every_steps

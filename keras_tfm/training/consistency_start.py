"""Let a network's second pass wait until the first has learned most."""

import keras

from keras_tfm.checks import check_whole_number
from keras_tfm.training.model_variables import sync_variables


class ConsistencyStart(keras.callbacks.Callback):
    """Train a `ConsistentLossModel` with one pass until an update.

    At first dropout moves the predictions less than what is still to be
    learned; a second pass would only take time. When it begins the training
    step is compiled once more.

    Args:
        update: Non-negative integer. Updates that are made with one pass, over
            all sessions; 0 for none.
    """

    def __init__(self, update):
        super().__init__()
        self.update = check_whole_number("update", update)
        self._left = 0
        self._last_batch = -1
        self._trained = None

    def set_model(self, model):
        super().set_model(model)
        # On the JAX backend each question for `self.model` makes `fit` hand
        # over its whole state.
        self._trained = model

    def on_train_begin(self, logs=None):
        self._look()

    def on_epoch_begin(self, epoch, logs=None):
        self._last_batch = -1

    def on_train_batch_end(self, batch, logs=None):
        # With `steps_per_execution` several batches end at once, and where
        # gradients are accumulated an update takes several: the optimizer
        # knows, and is asked only when it may be time.
        self._left -= batch - self._last_batch
        self._last_batch = batch
        if self._left <= 0 and not self._trained.two_passes:
            self._look()

    def _look(self):
        network = self._trained
        sync_variables(network)
        self._left = self.update - int(network.optimizer.iterations)
        two_passes = self._left <= 0
        if two_passes != network.two_passes:
            network.two_passes = two_passes
            network.make_train_function(force=True)

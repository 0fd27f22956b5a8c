"""The optimizer's moving average of the weights, where a mean is asked for."""

import contextlib

from keras_tfm.training.model_variables import kept_values
from keras_tfm.training.model_variables import read_weights
from keras_tfm.training.model_variables import replace_weights


class MovingAverage:
    """The weights that `fit` ends with, for `Validation(averaging=...)`.

    With `use_ema=True` an optimizer averages the weights of every step, and
    `fit` puts this average into the model at its end. Other optimizers leave
    the weights as they are.
    """

    @contextlib.contextmanager
    def averaged_weights(self, model):
        """Let a model have the average, and its own weights again afterwards.

        Args:
            model: The compiled Keras model that is trained.
        """
        with kept_values(model, model.trainable_variables):
            self.finish(model)
            yield

    def finish(self, model):
        """Leave the average in a model, as `fit` does at its end."""
        model.optimizer.finalize_variable_values(model.trainable_variables)
        # On the JAX backend both now share memory, which `predict` gives away.
        replace_weights(model, read_weights(model))

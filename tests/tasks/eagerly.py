"""Training without compiling, for tests of what comes around the steps."""

import keras


class Eagerly(keras.callbacks.Callback):
    """Let `fit` compile nothing: for few steps that is quicker."""

    def set_model(self, model):
        super().set_model(model)
        # `fit` makes its function after this.
        model.run_eagerly = True

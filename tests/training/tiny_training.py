"""A small model and its data, for the tests of callbacks."""

import keras
import numpy as np

BATCH, INPUTS, WIDTH = 7, 3, 5


def compiled_model(width=WIDTH, **optimizer):
    # All begin with the same weights and draw the same dropout.
    keras.utils.set_random_seed(20170612)
    model = keras.Sequential(
        [
            keras.Input((INPUTS,)),
            keras.layers.Dense(width, activation="tanh"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01, **optimizer), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


def data(steps):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH * steps, INPUTS)).astype("float32")
    return x, np.sin(x.sum(axis=1, keepdims=True))


def fit(model, callbacks, steps, epochs=1):
    """Train on the batches of these `steps` that the model has not seen."""
    x, y = data(steps)
    seen = BATCH * int(model.optimizer.iterations)
    model.fit(
        x[seen:],
        y[seen:],
        BATCH,
        epochs=epochs,
        shuffle=False,
        callbacks=callbacks,
        verbose=0,
    )


def weights_of(model):
    # On the JAX backend `fit` keeps them to itself until it is asked.
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()
    return [np.array(v.value) for v in model.trainable_variables]


def assert_same(found, expected):
    """Compare lists of arrays bit for bit."""
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()


def at_each_step(function, model):
    """Return a callback that calls a function with the model.

    Unlike `self.model` of a callback, this leaves the JAX backend alone: it
    does not hand over its state.
    """
    return keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: function(model)
    )

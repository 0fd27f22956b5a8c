"""Read and replace the variables of a model, also while `fit` runs.

On the JAX backend `fit` keeps its state to itself and empties the variables.
Once it was asked for the state it takes it from the variables again, so that
what a callback has assigned since is what training goes on with.
"""

import contextlib

import keras


def sync_variables(model):
    """Let the variables hold what `fit` works with, on every backend."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


def read_weights(model):
    """Return copies of the trainable weights, as NumPy arrays."""
    sync_variables(model)
    return _read(model.trainable_variables)


def replace_weights(model, weights):
    """Put arrays into the trainable variables, by position.

    Args:
        model: Built Keras model.
        weights: List of arrays of the same shapes.
    """
    sync_variables(model)
    _assign(model.trainable_variables, weights)


@contextlib.contextmanager
def kept_values(model, variables):
    """Give variables their values back at the end, bit for bit.

    Also after an error. Other variables are left alone.

    Args:
        model: Built Keras model.
        variables: List of variables of the model.
    """
    sync_variables(model)
    before = _read(variables)
    try:
        yield
    finally:
        # First, or what an interrupted `predict` holds would come afterwards.
        sync_variables(model)
        _assign(variables, before)


def _read(variables):
    return [keras.ops.convert_to_numpy(v.value) for v in variables]


def _assign(variables, arrays):
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)

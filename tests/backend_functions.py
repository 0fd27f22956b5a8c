"""What `keras.ops` leaves to the backend: gradients and compilation."""

import keras
import numpy as np


def compiled(function):
    """Return `function` of tensors, compiled with XLA."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, jit_compile=True, autograph=False)


def swift(function):
    """Return `function`, compiled where running it op by op is slow.

    JAX compiles each operation for each shape; TensorFlow does not.
    """
    if keras.backend.backend() == "jax":
        return compiled(function)
    return function


def gradients(function, tensors=(), variables=(), jit=False):
    """Return the gradients of a scalar function as NumPy arrays.

    Args:
        function: Function of `tensors` that returns a scalar tensor; it may
            read `variables`.
        tensors: Sequence of float arrays.
        variables: Sequence of Keras variables.
        jit: Whether to compile with XLA. JAX always does.

    Returns:
        Two lists: a gradient for each tensor and one for each variable.
    """
    tensors = [keras.ops.convert_to_tensor(tensor) for tensor in tensors]
    if keras.backend.backend() == "jax":
        found = _jax_gradients(function, tensors, variables)
    else:
        found = _tensorflow_gradients(function, tensors, variables, jit)
    found = [np.asarray(gradient) for gradient in found]
    return found[: len(tensors)], found[len(tensors) :]


def _jax_gradients(function, tensors, variables):
    import jax

    def scalar(tensors, values):
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*tensors)

    gradient = jax.jit(jax.grad(scalar, argnums=(0, 1)))
    by_tensor, by_variable = gradient(tensors, [v.value for v in variables])
    return [*by_tensor, *by_variable]


def _tensorflow_gradients(function, tensors, variables, jit):
    import tensorflow as tf

    def gradient(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            scalar = function(*tensors)
        sources = [*tensors, *(variable.value for variable in variables)]
        return [
            tf.convert_to_tensor(g)
            for g in tape.gradient(
                scalar, sources, unconnected_gradients="zero"
            )
        ]

    if jit:
        gradient = tf.function(gradient, jit_compile=True, autograph=False)
    return gradient(*tensors)

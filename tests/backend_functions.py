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


def output_and_gradients(function, weights, tensors, jit=False):
    """Return what a function gives and how it depends on its tensors.

    One program for both: on JAX to compile takes longer than all else.

    Args:
        function: Function of `tensors` that returns a tensor.
        weights: Float array of the output's shape.
        tensors: Sequence of float arrays.
        jit: Whether to compile with XLA. JAX always does.

    Returns:
        The output as a NumPy array, and a list with the gradient of the
        output's weighted sum by each tensor.
    """
    tensors = [keras.ops.convert_to_tensor(tensor) for tensor in tensors]

    def weighted(*tensors):
        output = function(*tensors)
        return keras.ops.sum(output * weights), output

    if keras.backend.backend() == "jax":
        import jax

        derived = jax.value_and_grad(
            weighted, argnums=tuple(range(len(tensors))), has_aux=True
        )
        (_, output), found = jax.jit(derived)(*tensors)
    else:
        import tensorflow as tf

        def derived(*tensors):
            with tf.GradientTape() as tape:
                tape.watch(tensors)
                scalar, output = weighted(*tensors)
            return output, tape.gradient(
                scalar, tensors, unconnected_gradients="zero"
            )

        if jit:
            derived = tf.function(derived, jit_compile=True, autograph=False)
        output, found = derived(*tensors)
    return np.asarray(output), [np.asarray(gradient) for gradient in found]


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

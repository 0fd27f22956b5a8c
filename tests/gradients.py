"""Gradients and compiled calls on whichever backend runs the tests."""

import keras
import numpy as np
from keras import ops


def weight_gradients(layer, loss, *args, **kwargs):
    """Return the gradient of `loss(layer(…))` for each trainable weight.

    Args:
        layer: Built Keras layer.
        loss: Function of the layer's output that returns a scalar.
        *args: Passed to the layer.
        **kwargs: Passed to the layer.

    Returns:
        Dictionary of the weights' paths and NumPy arrays; zeros for a weight
        that the loss does not depend on.
    """
    variables = layer.trainable_variables
    if keras.backend.backend() == "jax":
        gradients = _jax_gradients(layer, loss, args, kwargs)
    else:
        gradients = raw_tensorflow_gradients(layer, loss, *args, **kwargs)
    return {
        variable.path: np.zeros(variable.shape)
        if gradient is None
        else ops.convert_to_numpy(ops.convert_to_tensor(gradient))
        for variable, gradient in zip(variables, gradients, strict=True)
    }


def raw_tensorflow_gradients(layer, loss, *args, **kwargs):
    """Return the gradients as TensorFlow gives them to an optimizer."""
    import tensorflow as tf

    with tf.GradientTape() as tape:
        value = loss(layer(*args, **kwargs))
    return tape.gradient(value, [v.value for v in layer.trainable_variables])


def _jax_gradients(layer, loss, args, kwargs):
    import jax

    frozen = [variable.value for variable in layer.non_trainable_variables]

    def value(trained):
        output, _ = layer.stateless_call(trained, frozen, *args, **kwargs)
        return loss(output)

    return jax.grad(value)([v.value for v in layer.trainable_variables])


def compiled(layer, **kwargs):
    """Return `layer` as a compiled function of its tensors.

    With TensorFlow this is a `tf.function`, whose boundary takes implicit
    masks away; with JAX `jax.jit` of the stateless call.
    """
    if keras.backend.backend() == "jax":
        import jax

        trained = [v.value for v in layer.trainable_variables]
        frozen = [v.value for v in layer.non_trainable_variables]

        @jax.jit
        def call(*tensors):
            return layer.stateless_call(trained, frozen, *tensors, **kwargs)[0]

        return call
    import tensorflow as tf

    return tf.function(lambda *tensors: layer(*tensors, **kwargs))

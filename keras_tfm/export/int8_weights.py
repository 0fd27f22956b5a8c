"""Weights stored as 8-bit integers, for models that are only read."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


class Int8Weights(tf.Module):
    """A model's matrices as int8 with a scale for each output.

    Weight-only quantization: an embedding table has a scale for each token,
    any other matrix one for each of its columns; vectors and biases stay as
    they are. The matrices are made whole again at the start of each call, so
    that the arithmetic is that of float32: it takes a quarter of the room, and
    no less time.

    Args:
        variables: The model's Keras variables.

    Example:
        >>> layer = keras.layers.Dense(3)
        >>> layer.build((None, 64))
        >>> weights = Int8Weights(layer.variables)
        >>> small = weights.within(layer)
        >>> x = keras.random.normal((2, 64), seed=1)
        >>> bool(keras.ops.max(keras.ops.abs(small(x) - layer(x))) < 0.1)
        True
    """

    def __init__(self, variables: Sequence[keras.Variable]) -> None:
        super().__init__(name="int8_weights")
        self.saved_variables: list[tf.Variable] = []
        self._parts: list[tuple[keras.Variable, tf.Variable, tf.Variable]] = []
        for variable in variables:
            if not _is_matrix(variable):
                self.saved_variables.append(variable.value)
                continue
            # The axis that is summed over shares a scale.
            axis = -1 if variable.path.endswith("embeddings") else 0
            values, scale = keras.quantizers.abs_max_quantize(
                keras.ops.cast(variable, "float32"), axis=axis, to_numpy=True
            )
            whole = tf.Variable(values, trainable=False, dtype=tf.int8)
            scales = tf.Variable(scale, trainable=False, dtype=tf.float32)
            self._parts.append((variable, whole, scales))
            self.saved_variables.extend((whole, scales))

    def within(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, reading the int8 weights of the model."""

        def call(*arguments: Any) -> Any:
            mapping = [
                (
                    variable,
                    tf.cast(
                        tf.cast(whole, tf.float32) / scales, variable.dtype
                    ),
                )
                for variable, whole, scales in self._parts
            ]
            with keras.StatelessScope(state_mapping=mapping):
                return function(*arguments)

        return call


def _is_matrix(variable: keras.Variable) -> bool:
    is_float = keras.backend.is_float_dtype(variable.dtype)
    return is_float and len(variable.shape) == 2

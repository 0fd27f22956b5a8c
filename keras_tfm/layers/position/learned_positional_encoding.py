"""Learned positions: one trained vector for each place."""

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.ops.positions import check_positions
from keras_tfm.ops.positions import positions_from


@keras.saving.register_keras_serializable(package="keras_tfm")
class LearnedPositionalEncoding(keras.layers.Layer):
    """Add a trained vector for each position.

    Masking: passes the mask on.

    Args:
        max_sequence_length: Positive integer, in tokens. Positions from here on
            are an error; they are never clamped to the last row.
        embeddings_initializer: Keras initializer.
            Defaults to a normal distribution with the deviation 0.02.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        start_index: Integer or scalar tensor. Position of the first vector,
            for decoding step by step. Defaults to `0`.
        positions: Integer tensor `(length,)` or `(batch, length)` in place of
            `start_index`, for packed rows.

    Output shape:
        `(batch, length, hidden_dim)`.

    Raises:
        ValueError: If a position is known to lie beyond the table: the length
            is, or, outside a compiled function, `start_index` or `positions`.

    Example:
        >>> layer = LearnedPositionalEncoding(max_sequence_length=8)
        >>> tuple(layer(keras.ops.ones((2, 5, 3))).shape)
        (2, 5, 3)

    Reference:
        [Gehring et al., 2017](https://arxiv.org/abs/1705.03122), section 3.1.
    """

    def __init__(
        self, max_sequence_length, embeddings_initializer=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.max_sequence_length = check_positive_int(
            "max_sequence_length", max_sequence_length
        )
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer
            or keras.initializers.RandomNormal(stddev=0.02)
        )
        self.supports_masking = True

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            shape=(self.max_sequence_length, input_shape[-1]),
            initializer=self.embeddings_initializer,
            name="embeddings",
        )
        self.built = True

    def call(self, inputs, start_index=0, positions=None):
        if positions is None:
            length = ops.shape(inputs)[1]
            # Known also while a graph is traced, where `positions` are not.
            check_positions(length - 1, self.max_sequence_length, self.name)
            positions = positions_from(length, start_index)
        check_positions(positions, self.max_sequence_length, self.name)
        table = ops.cast(self.embeddings, self.compute_dtype)
        # A gather from a product, not from the variable: its gradient is dense.
        return inputs + ops.take(table * 1.0, positions, axis=0)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "max_sequence_length": self.max_sequence_length,
            "embeddings_initializer": keras.initializers.serialize(
                self.embeddings_initializer
            ),
        }

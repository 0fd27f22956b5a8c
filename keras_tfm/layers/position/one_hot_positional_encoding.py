"""One-hot positions, put beside a sequence of vectors."""

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.ops.positions import check_positions
from keras_tfm.ops.positions import positions_from


@keras.saving.register_keras_serializable(package="keras_tfm")
class OneHotPositionalEncoding(keras.layers.Layer):
    """Concatenate to each vector the one-hot code of its position.

    A linear map of `[x; onehot(p)]` is `W x + P[p]`: putting the position
    beside the vector and multiplying is the same as adding a learned vector for
    each position. This is why positions may be added at all.

    Masking: passes the mask on.

    Args:
        max_sequence_length: Positive integer, in tokens. Positions from here on
            are an error.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        start_index: Integer or scalar tensor. Position of the first vector,
            for decoding step by step. Defaults to `0`.
        positions: Integer tensor `(length,)` or `(batch, length)` in place of
            `start_index`, for packed rows.

    Output shape:
        `(batch, length, hidden_dim + max_sequence_length)`.

    Raises:
        ValueError: If a position is known to lie beyond the code: the length
            is, or, outside a compiled function, `start_index` or `positions`.

    Example:
        >>> layer = OneHotPositionalEncoding(max_sequence_length=3)
        >>> layer(keras.ops.zeros((1, 2, 1))).numpy().tolist()
        [[[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]]
    """

    def __init__(self, max_sequence_length, **kwargs):
        super().__init__(**kwargs)
        self.max_sequence_length = check_positive_int(
            "max_sequence_length", max_sequence_length
        )
        self.supports_masking = True

    def call(self, inputs, start_index=0, positions=None):
        length = ops.shape(inputs)[1]
        if positions is None:
            # Known also while a graph is traced, where `positions` are not.
            check_positions(length - 1, self.max_sequence_length, self.name)
            positions = positions_from(length, start_index)
        positions = ops.convert_to_tensor(positions)
        check_positions(positions, self.max_sequence_length, self.name)
        codes = ops.one_hot(
            positions, self.max_sequence_length, dtype=inputs.dtype
        )
        if len(codes.shape) == 2:
            codes = ops.expand_dims(codes, 0)
        size = (ops.shape(inputs)[0], length, self.max_sequence_length)
        return ops.concatenate([inputs, ops.broadcast_to(codes, size)], axis=-1)

    def compute_output_shape(self, input_shape):
        width = input_shape[-1] + self.max_sequence_length
        return (*input_shape[:-1], width)

    def get_config(self):
        return {
            **super().get_config(),
            "max_sequence_length": self.max_sequence_length,
        }

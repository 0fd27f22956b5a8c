"""Rotary positions for any attention."""

import keras
from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.layers.position.attention_position import AttentionPosition
from keras_tfm.ops.positions import positions_from
from keras_tfm.ops.rotary import PAIRINGS
from keras_tfm.ops.rotary import rotary_frequencies
from keras_tfm.ops.rotary import rotate_by_position


@keras.saving.register_keras_serializable(package="keras_tfm")
class RotaryEmbedding(AttentionPosition):
    """Turn queries and keys by angles that grow with their position.

    What a query and a key have in common then depends on their distance and not
    on where they stand. Given to an attention layer as `position`, or called on
    heads. No weights, any length.

    Args:
        rotary_dim: Positive even integer: so many channels of a head turn.
            Defaults to all of them, which must then be an even number.
        max_wavelength: Positive float, in tokens, divided by 2 pi.
            Defaults to `10000.0`.
        pairing: `"interleaved"` (channels 2i and 2i + 1 turn together, as in
            the paper) or `"halves"` (channels i and i + rotary_dim / 2, as in
            GPT-NeoX and Llama). Defaults to `"interleaved"`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, heads, length, head_size)`.
        start_index: Integer or scalar tensor. Position of the first vector.
            Defaults to `0`.
        positions: Integer tensor `(length,)` or `(batch, length)` in place of
            `start_index`.

    Output shape:
        As the inputs.

    Raises:
        ValueError: If `rotary_dim` is odd or greater than the size of a head,
            or `pairing` is not one of those named.

    Example:
        >>> layer = RotaryEmbedding()
        >>> heads = keras.ops.array([[[[1.0, 0.0], [1.0, 0.0]]]])
        >>> layer(heads).numpy().round(3).tolist()
        [[[[1.0, 0.0], [0.5400000214576721, 0.8410000205039978]]]]

    Reference:
        [Su et al., 2021](https://arxiv.org/abs/2104.09864), section 3.2.
    """

    def __init__(
        self,
        rotary_dim=None,
        max_wavelength=10000.0,
        pairing="interleaved",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if rotary_dim is not None:
            rotary_frequencies(rotary_dim)
        self.rotary_dim = rotary_dim
        self.max_wavelength = check_positive("max_wavelength", max_wavelength)
        self.pairing = check_choice("pairing", pairing, PAIRINGS)

    def call(self, inputs, start_index=0, positions=None):
        if positions is None:
            positions = positions_from(ops.shape(inputs)[2], start_index)
        return self.place(inputs, positions)

    def place(self, heads, positions):
        return rotate_by_position(
            heads,
            positions,
            self.rotary_dim,
            self.max_wavelength,
            self.pairing,
        )

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "rotary_dim": self.rotary_dim,
            "max_wavelength": self.max_wavelength,
            "pairing": self.pairing,
        }

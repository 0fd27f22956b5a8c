"""Sinusoidal positions, added to a sequence of vectors."""

import keras
from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.ops.positions import DENOMINATORS
from keras_tfm.ops.positions import LAYOUTS
from keras_tfm.ops.positions import positions_from
from keras_tfm.ops.positions import sinusoids


@keras.saving.register_keras_serializable(package="keras_tfm")
class PositionalEncoding(keras.layers.Layer):
    """Add sines and cosines of falling frequency to tell positions apart.

    No weights, any length, any width. The angles are computed in float32 and
    cast to the layer's dtype only at the end.

    Masking: passes the mask on.

    Args:
        layout: `"concat"` (all sines, then all cosines, as in Tensor2Tensor)
            or `"interleaved"` (as in the paper). Defaults to `"concat"`.
        denominator: `"tensor2tensor"` (`hidden_dim / 2 - 1`) or `"paper"`
            (`hidden_dim / 2`), what the index of a frequency is divided by.
            Defaults to `"tensor2tensor"`.
        max_wavelength: Positive float, in tokens, divided by 2 pi.
            Defaults to `10000.0`.
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
        ValueError: If `layout` or `denominator` is not one of those named.

    Example:
        >>> layer = PositionalEncoding()
        >>> layer(keras.ops.zeros((1, 1, 4))).numpy().tolist()
        [[[0.0, 0.0, 1.0, 1.0]]]

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.5,
        is `layout="interleaved", denominator="paper"`.
    """

    def __init__(
        self,
        layout="concat",
        denominator="tensor2tensor",
        max_wavelength=10000.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.layout = check_choice("layout", layout, LAYOUTS)
        self.denominator = check_choice(
            "denominator", denominator, DENOMINATORS
        )
        self.max_wavelength = check_positive("max_wavelength", max_wavelength)
        self.supports_masking = True

    def call(self, inputs, start_index=0, positions=None):
        if positions is None:
            positions = positions_from(ops.shape(inputs)[1], start_index)
        encoding = sinusoids(
            positions,
            inputs.shape[-1],
            self.layout,
            self.denominator,
            self.max_wavelength,
        )
        return inputs + ops.cast(encoding, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "layout": self.layout,
            "denominator": self.denominator,
            "max_wavelength": self.max_wavelength,
        }

"""Where the real tokens are, as a layer."""

import keras

from keras_tfm.ops.masks import padding_mask


@keras.saving.register_keras_serializable(package="keras_tfm")
class TokenMask(keras.layers.Layer):
    """Mark the real tokens of a batch of ids with `True`.

    A layer, so that a functional model can compute the mask from its ids and
    hand it down as a tensor.

    Args:
        pad_id: Integer, the id of padding. Defaults to `0`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name`.

    Call arguments:
        token_ids: Integer tensor `(batch, length)`.

    Output shape:
        `(batch, length)`, boolean.

    Example:
        >>> TokenMask()(keras.ops.convert_to_tensor([[5, 0]])).numpy().tolist()
        [[True, False]]
    """

    def __init__(self, pad_id=0, **kwargs):
        super().__init__(**kwargs)
        self.pad_id = pad_id

    def call(self, token_ids):
        return padding_mask(token_ids, self.pad_id)

    def compute_output_spec(self, token_ids):
        return keras.KerasTensor(token_ids.shape, dtype="bool")

    def compute_output_shape(self, token_ids_shape):
        return token_ids_shape

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id}

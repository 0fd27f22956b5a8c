"""The encoder-decoder Transformer."""

from keras_tfm.models.transformer.token_mask import TokenMask
from keras_tfm.models.transformer.transformer import Transformer

__all__ = ["TokenMask", "Transformer"]

"""The encoder-decoder Transformer."""

from keras_tfm.models.transformer.transformer import Transformer

__all__ = ["Transformer"]

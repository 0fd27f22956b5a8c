"""Functional models and their published sizes."""

from keras_tfm.models.presets import PRESETS
from keras_tfm.models.presets import preset_arguments
from keras_tfm.models.transformer.token_mask import TokenMask
from keras_tfm.models.transformer.transformer import Transformer

__all__ = ["PRESETS", "TokenMask", "Transformer", "preset_arguments"]

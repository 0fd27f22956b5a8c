"""Functional models and their published sizes."""

from keras_tfm.models.loss_model import LossModel
from keras_tfm.models.loss_model import with_labels
from keras_tfm.models.packed_model import packed_model
from keras_tfm.models.presets import PRESETS
from keras_tfm.models.presets import preset_arguments
from keras_tfm.models.segments import SegmentMask
from keras_tfm.models.segments import SegmentPositions
from keras_tfm.models.token_mask import TokenMask
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.models.universal.universal_transformer import (
    UniversalTransformer,
)

__all__ = [
    "PRESETS",
    "LossModel",
    "SegmentMask",
    "SegmentPositions",
    "TokenMask",
    "Transformer",
    "UniversalTransformer",
    "packed_model",
    "preset_arguments",
    "with_labels",
]

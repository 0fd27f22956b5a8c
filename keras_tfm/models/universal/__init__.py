"""The Universal Transformer: one block, shared over the depth."""

from keras_tfm.models.universal.universal_transformer import (
    UniversalTransformer,
)

__all__ = ["UniversalTransformer"]

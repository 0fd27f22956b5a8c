"""Position schemes for sequences of vectors."""

from keras_tfm.layers.position.learned_positional_encoding import (
    LearnedPositionalEncoding,
)
from keras_tfm.layers.position.one_hot_positional_encoding import (
    OneHotPositionalEncoding,
)
from keras_tfm.layers.position.positional_encoding import PositionalEncoding

__all__ = [
    "LearnedPositionalEncoding",
    "OneHotPositionalEncoding",
    "PositionalEncoding",
]

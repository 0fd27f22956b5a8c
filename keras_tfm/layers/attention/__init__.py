"""Multi-head attention layers."""

from keras_tfm.layers.attention.multi_head_attention import MultiHeadAttention
from keras_tfm.layers.attention.multi_head_self_attention import (
    MultiHeadSelfAttention,
)

__all__ = ["MultiHeadAttention", "MultiHeadSelfAttention"]

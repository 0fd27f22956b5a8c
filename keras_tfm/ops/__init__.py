"""Pure tensor functions on `keras.ops`: no weights, no state."""

from keras_tfm.ops.attention import attention_weights
from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.attention import split_heads
from keras_tfm.ops.blockwise_attention import blockwise_attention
from keras_tfm.ops.cross_entropy import smoothed_cross_entropy
from keras_tfm.ops.cross_entropy import token_mean
from keras_tfm.ops.masks import band_mask
from keras_tfm.ops.masks import causal_mask
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.masks import expand_attention_mask
from keras_tfm.ops.masks import expand_padding_mask
from keras_tfm.ops.masks import from_additive_mask
from keras_tfm.ops.masks import from_torch_mask
from keras_tfm.ops.masks import padding_mask
from keras_tfm.ops.masks import segment_mask
from keras_tfm.ops.masks import zero_padding
from keras_tfm.ops.positions import sinusoids
from keras_tfm.ops.search import ancestor_mask
from keras_tfm.ops.search import keep_top_k
from keras_tfm.ops.search import keep_top_p
from keras_tfm.ops.sequences import segment_positions
from keras_tfm.ops.sequences import sequence_lengths
from keras_tfm.ops.sequences import shift_right
from keras_tfm.ops.vocabulary_loss import vocabulary_loss

__all__ = [
    "ancestor_mask",
    "attention_weights",
    "band_mask",
    "blockwise_attention",
    "causal_mask",
    "combine_masks",
    "dot_product_attention",
    "expand_attention_mask",
    "expand_padding_mask",
    "from_additive_mask",
    "from_torch_mask",
    "join_heads",
    "keep_top_k",
    "keep_top_p",
    "padding_mask",
    "segment_mask",
    "segment_positions",
    "sequence_lengths",
    "shift_right",
    "sinusoids",
    "smoothed_cross_entropy",
    "split_heads",
    "token_mean",
    "vocabulary_loss",
    "zero_padding",
]

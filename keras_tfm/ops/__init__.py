"""Pure tensor functions on `keras.ops`: no weights, no state."""

from keras_tfm.ops.attention import attention_weights
from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.attention import split_heads
from keras_tfm.ops.blockwise_attention import blockwise_attention
from keras_tfm.ops.cache_slots import cache_slots
from keras_tfm.ops.cross_entropy import smoothed_cross_entropy
from keras_tfm.ops.cross_entropy import token_mean
from keras_tfm.ops.halting import halting_step
from keras_tfm.ops.local_attention import local_attention
from keras_tfm.ops.local_attention import spread_weights
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
from keras_tfm.ops.relative_attention import relative_scores
from keras_tfm.ops.relative_attention import relative_values
from keras_tfm.ops.relative_positions import alibi_scores
from keras_tfm.ops.relative_positions import alibi_slopes
from keras_tfm.ops.relative_positions import relative_buckets
from keras_tfm.ops.rotary import rotate_by_position
from keras_tfm.ops.search import ancestor_mask
from keras_tfm.ops.search import keep_top_k
from keras_tfm.ops.search import keep_top_p
from keras_tfm.ops.sequences import segment_positions
from keras_tfm.ops.sequences import sequence_lengths
from keras_tfm.ops.sequences import shift_right
from keras_tfm.ops.vocabulary_loss import vocabulary_loss
from keras_tfm.ops.windows import Band
from keras_tfm.ops.windows import OwnAndPreviousBlock
from keras_tfm.ops.windows import OwnBlock

__all__ = [
    "Band",
    "OwnAndPreviousBlock",
    "OwnBlock",
    "alibi_scores",
    "alibi_slopes",
    "ancestor_mask",
    "attention_weights",
    "band_mask",
    "blockwise_attention",
    "cache_slots",
    "causal_mask",
    "combine_masks",
    "dot_product_attention",
    "expand_attention_mask",
    "expand_padding_mask",
    "from_additive_mask",
    "from_torch_mask",
    "halting_step",
    "join_heads",
    "keep_top_k",
    "keep_top_p",
    "local_attention",
    "padding_mask",
    "relative_buckets",
    "relative_scores",
    "relative_values",
    "rotate_by_position",
    "segment_mask",
    "segment_positions",
    "sequence_lengths",
    "shift_right",
    "sinusoids",
    "smoothed_cross_entropy",
    "split_heads",
    "spread_weights",
    "token_mean",
    "vocabulary_loss",
    "zero_padding",
]

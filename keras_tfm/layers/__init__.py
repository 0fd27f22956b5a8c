"""Keras layers of the Transformer, one public class a file."""

from keras_tfm.layers.attention.local_self_attention import LocalSelfAttention
from keras_tfm.layers.attention.memory_compressed_attention import (
    MemoryCompressedAttention,
)
from keras_tfm.layers.attention.multi_head_attention import MultiHeadAttention
from keras_tfm.layers.attention.multi_head_self_attention import (
    MultiHeadSelfAttention,
)
from keras_tfm.layers.attention.relative_self_attention import (
    RelativeSelfAttention,
)
from keras_tfm.layers.blocks.adaptive_halting import AdaptiveHalting
from keras_tfm.layers.blocks.decoder import Decoder
from keras_tfm.layers.blocks.decoder_block import DecoderBlock
from keras_tfm.layers.blocks.encoder import Encoder
from keras_tfm.layers.blocks.encoder_block import EncoderBlock
from keras_tfm.layers.blocks.residual import Residual
from keras_tfm.layers.blocks.universal_decoder import UniversalDecoder
from keras_tfm.layers.blocks.universal_encoder import UniversalEncoder
from keras_tfm.layers.embedding.token_embedding import TokenEmbedding
from keras_tfm.layers.feed_forward.feed_forward import FeedForward
from keras_tfm.layers.feed_forward.gelu import gelu_tanh
from keras_tfm.layers.position.alibi_bias import AlibiBias
from keras_tfm.layers.position.learned_positional_encoding import (
    LearnedPositionalEncoding,
)
from keras_tfm.layers.position.one_hot_positional_encoding import (
    OneHotPositionalEncoding,
)
from keras_tfm.layers.position.positional_encoding import PositionalEncoding
from keras_tfm.layers.position.relative_position_bias import (
    RelativePositionBias,
)
from keras_tfm.layers.position.rotary_embedding import RotaryEmbedding
from keras_tfm.layers.regularization.dropout import Dropout

__all__ = [
    "AdaptiveHalting",
    "AlibiBias",
    "Decoder",
    "DecoderBlock",
    "Dropout",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "LearnedPositionalEncoding",
    "LocalSelfAttention",
    "MemoryCompressedAttention",
    "MultiHeadAttention",
    "MultiHeadSelfAttention",
    "OneHotPositionalEncoding",
    "PositionalEncoding",
    "RelativePositionBias",
    "RelativeSelfAttention",
    "Residual",
    "RotaryEmbedding",
    "TokenEmbedding",
    "UniversalDecoder",
    "UniversalEncoder",
    "gelu_tanh",
]

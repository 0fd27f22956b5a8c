"""Residual connections, blocks and stacks of blocks."""

from keras_tfm.layers.blocks.adaptive_halting import AdaptiveHalting
from keras_tfm.layers.blocks.decoder import Decoder
from keras_tfm.layers.blocks.decoder_block import DecoderBlock
from keras_tfm.layers.blocks.encoder import Encoder
from keras_tfm.layers.blocks.encoder_block import EncoderBlock
from keras_tfm.layers.blocks.residual import Residual
from keras_tfm.layers.blocks.universal_decoder import UniversalDecoder
from keras_tfm.layers.blocks.universal_encoder import UniversalEncoder

__all__ = [
    "AdaptiveHalting",
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "Residual",
    "UniversalDecoder",
    "UniversalEncoder",
]

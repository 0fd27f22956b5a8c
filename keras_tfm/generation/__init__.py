"""Decoding: loops that write sequences with a step function."""

from keras_tfm.generation.beam_search import BeamSearchGenerator
from keras_tfm.generation.constraints import BannedTokens
from keras_tfm.generation.constraints import Constraint
from keras_tfm.generation.constraints import NoRepeatNgram
from keras_tfm.generation.generator import Generator
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.generation.length_penalty import GNMTLengthPenalty
from keras_tfm.generation.length_penalty import LengthPenalty
from keras_tfm.generation.length_penalty import MeanLengthPenalty
from keras_tfm.generation.length_penalty import NoLengthPenalty
from keras_tfm.generation.next_tokens import NextTokens
from keras_tfm.generation.sampling import SamplingGenerator
from keras_tfm.generation.token_chooser import TokenChooser
from keras_tfm.ops.search import NEVER

__all__ = [
    "NEVER",
    "BannedTokens",
    "BeamSearchGenerator",
    "Constraint",
    "GNMTLengthPenalty",
    "Generator",
    "GreedyGenerator",
    "LengthPenalty",
    "MeanLengthPenalty",
    "NextTokens",
    "NoLengthPenalty",
    "NoRepeatNgram",
    "SamplingGenerator",
    "TokenChooser",
]

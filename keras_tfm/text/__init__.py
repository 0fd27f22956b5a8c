"""Tokenizers: text to ids and back, the same in Python and in a graph."""

from keras_tfm.text.byte_pair_tokenizer import BytePairTokenizer
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.loading import load_tokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.subword_sampling import SubwordSampler
from keras_tfm.text.tokenizer import Tokenizer

__all__ = [
    "BytePairTokenizer",
    "CharacterTokenizer",
    "SentencePieceTokenizer",
    "SubwordSampler",
    "Tokenizer",
    "load_tokenizer",
]

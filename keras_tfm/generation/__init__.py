"""Decoding: loops that write sequences with a step function."""

from keras_tfm.generation.generator import Generator
from keras_tfm.generation.greedy import GreedyGenerator

__all__ = ["Generator", "GreedyGenerator"]

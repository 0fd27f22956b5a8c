"""Position-wise networks."""

from keras_tfm.layers.feed_forward.feed_forward import FeedForward
from keras_tfm.layers.feed_forward.gelu import gelu_tanh

__all__ = ["FeedForward", "gelu_tanh"]

"""Layers that act in training only."""

from keras_tfm.layers.regularization.dropout import Dropout

__all__ = ["Dropout"]

"""Positions that enter an attention as scores of distances."""

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.layers.position.attention_position import AttentionPosition


class DistanceBias(AttentionPosition):
    """Abstract: a score for each distance and head.

    A subclass says which in `scores`. Called as a layer it gives the scores of
    a tensor of distances, with the heads as its last axis.
    """

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = check_positive_int("num_heads", num_heads)

    def call(self, inputs):
        scores = ops.moveaxis(self.scores(inputs), 0, -1)
        return ops.cast(scores, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.num_heads)

    def compute_output_spec(self, inputs):
        shape = self.compute_output_shape(inputs.shape)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "num_heads": self.num_heads}

"""A bias of one's own by the distance, as a layer and in an attention."""

import keras
import numpy as np
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers.position.distance_bias import DistanceBias

H = 3


class Cliff(DistanceBias):
    """Keys more than so many tokens away are hidden, more for each head."""

    def scores(self, distances):
        far = ops.absolute(ops.cast(distances, "int32"))
        heads = ops.arange(self.num_heads)
        heads = ops.reshape(heads, (-1, *[1] * len(far.shape)))
        return ops.where(far[None] > heads, -1e9, 0.0)


def test_as_a_layer_the_heads_come_last():
    distances = np.array([[-2, 0], [1, 5]])
    layer = Cliff(H, dtype="mixed_bfloat16")
    output = layer(distances)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    hidden = ops.convert_to_numpy(ops.cast(output, "float32")) < 0
    assert hidden.shape == (2, 2, H)
    for row, column, head in np.ndindex(hidden.shape):
        assert hidden[row, column, head] == (abs(distances[row, column]) > head)
    assert layer.compute_output_shape((None, 2)) == (None, 2, H)


def test_each_head_of_an_attention_gets_its_scores():
    layer = MultiHeadSelfAttention(H, position=Cliff(H))
    x = np.random.default_rng(1).normal(size=(2, 7, 6)).astype("float32")
    layer.build(x.shape)
    randomise(layer)
    _, weights = layer(x, return_attention_scores=True)
    weights = ops.convert_to_numpy(weights)
    for head, query, key in np.ndindex(H, 7, 7):
        seen = (weights[:, head, query, key] > 0.0).all()
        assert seen == (abs(query - key) <= head)

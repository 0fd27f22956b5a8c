"""A position of one's own for any attention."""

import keras
import numpy as np
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import LocalSelfAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers.position.attention_position import AttentionPosition
from keras_tfm.ops import OwnBlock

X = np.random.default_rng(1).normal(size=(2, 7, 6)).astype("float32")


class OnlyBefore(AttentionPosition):
    """Hide what comes after the query, by its score."""

    def scores(self, distances):
        return ops.where(distances > 0, -1e9, 0.0)[None]


def layer_with(kind, *args, **kwargs):
    layer = kind(3, *args, **kwargs)
    layer.build(X.shape)
    randomise(layer)
    return layer


def test_a_position_that_does_nothing_changes_nothing():
    without = layer_with(MultiHeadSelfAttention)
    layer = layer_with(MultiHeadSelfAttention, position=AttentionPosition())
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(X)), ops.convert_to_numpy(without(X))
    )


def test_scores_reach_every_kind_of_attention():
    for kind in ((MultiHeadSelfAttention,), (LocalSelfAttention, OwnBlock(3))):
        layer = layer_with(*kind, position=OnlyBefore())
        without = layer_with(*kind)
        np.testing.assert_allclose(
            layer(X),
            ops.convert_to_numpy(without(X, use_causal_mask=True)),
            atol=1e-5,
        )


def test_it_is_a_keras_layer():
    assert issubclass(AttentionPosition, keras.layers.Layer)

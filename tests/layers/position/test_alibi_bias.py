"""AlibiBias in an attention, and what it promises about length."""

import numpy as np
import pytest
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import AlibiBias
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.ops import alibi_slopes

B, T, H, E = 2, 7, 3, 6
X = np.random.default_rng(1).normal(size=(B, T, E)).astype("float32")


def test_scores_fall_by_the_slope_with_each_token():
    layer = AlibiBias(H)
    scores = ops.convert_to_numpy(layer(np.array([[-3, 0, 2]])))
    expected = -alibi_slopes(H) * np.array([[[3], [0], [2]]])
    np.testing.assert_allclose(scores, expected, atol=1e-7)


def test_a_bias_made_by_hand_gives_the_same():
    layer = MultiHeadSelfAttention(H, position=AlibiBias(H))
    layer.build((B, T, E))
    randomise(layer)
    usual = MultiHeadSelfAttention(H)
    usual.build((B, T, E))
    usual.set_weights(layer.get_weights())
    places = np.arange(T)
    far = np.abs(places[None] - places[:, None])
    bias = -alibi_slopes(H)[None, :, None, None] * far
    np.testing.assert_allclose(
        layer(X, use_causal_mask=True),
        ops.convert_to_numpy(
            usual(X, position_bias=bias, use_causal_mask=True)
        ),
        atol=1e-5,
    )


def test_a_wrong_number_of_heads_is_named():
    with pytest.raises(ValueError, match="`num_heads`"):
        AlibiBias(0)

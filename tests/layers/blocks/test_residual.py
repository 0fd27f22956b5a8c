"""Where the norm and the sum stand, and what a residual wraps."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_checks import randomise
from numpy_reference import layer_norm

from keras_tfm.layers import FeedForward
from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import Residual

B, T, S, H, E, F = 2, 5, 7, 3, 6, 11
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")


class Double(keras.layers.Layer):
    def call(self, inputs):
        return 2.0 * inputs


def test_pre_norm_and_post_norm_by_hand():
    # A row of 1 and 3 is -1 and 1 when normalised.
    x = np.array([[[1.0, 3.0]]])
    pre = Residual(Double(), layer_norm_epsilon=1e-12)(x)
    np.testing.assert_allclose(pre, [[[-1.0, 5.0]]], rtol=1e-5)
    post = Residual(Double(), normalize_first=False, layer_norm_epsilon=1e-12)
    np.testing.assert_allclose(post(x), [[[-1.0, 1.0]]], rtol=1e-5)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_equals_the_formula_in_numpy(pre_norm):
    layer = Residual(FeedForward(F), normalize_first=pre_norm)
    layer.build((B, T, E))
    randomise(layer)
    gamma, beta = layer.norm.get_weights()
    w1, b1, w2, b2 = layer.sublayer.get_weights()

    def work(x):
        return np.maximum(x @ w1 + b1, 0.0) @ w2 + b2

    expected = (
        X + work(layer_norm(X, gamma, beta))
        if pre_norm
        else layer_norm(X + work(X), gamma, beta)
    )
    np.testing.assert_allclose(layer(X), expected, atol=1e-4)


def test_pre_norm_is_the_identity_where_the_sublayer_gives_zeros():
    layer = Residual(keras.layers.Dense(E, kernel_initializer="zeros"))
    np.testing.assert_array_equal(layer(X), X)


def test_pre_norm_hands_normalised_inputs_to_the_sublayer():
    layer = Residual(FeedForward(F), layer_norm_epsilon=1e-12)
    added = ops.convert_to_numpy(layer(X)) - X
    added_to_ten = ops.convert_to_numpy(layer(10.0 * X)) - 10.0 * X
    np.testing.assert_allclose(added_to_ten, added, atol=1e-4)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-12, 0.5])
def test_the_epsilon_reaches_the_norm(epsilon):
    layer = Residual(Double(), layer_norm_epsilon=epsilon)
    layer.build((B, T, E))
    assert layer.norm.epsilon == epsilon


def test_a_second_input_goes_to_the_sublayer():
    context = np.random.default_rng(1).normal(size=(B, S, E))
    context = context.astype("float32")
    inner = MultiHeadAttention(H)
    layer = Residual(inner)
    result = ops.convert_to_numpy(layer(X, context))
    normed = layer.norm(X)
    np.testing.assert_allclose(
        result, X + ops.convert_to_numpy(inner(normed, context)), atol=1e-6
    )


def test_a_function_takes_the_place_of_the_sublayer():
    layer = Residual(MultiHeadSelfAttention(H))
    layer.build((B, T, E))

    def attend(x):
        return layer.sublayer(x, return_attention_scores=True)

    result, weights = layer.connect(X, attend)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(result), ops.convert_to_numpy(layer(X))
    )
    assert tuple(weights.shape) == (B, H, T, T)


def test_dropout_falls_on_the_output_of_the_sublayer():
    layer = Residual(Double(), dropout=0.5)
    added = ops.convert_to_numpy(layer(X, training=True)) - X
    whole = ops.convert_to_numpy(layer(X)) - X
    kept = np.abs(added) > 1e-6
    assert 0.2 < kept.mean() < 0.8
    np.testing.assert_allclose(added[kept], 2.0 * whole[kept], rtol=1e-3)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_constant_and_huge_rows_stay_finite_in_16_bits(dtype):
    rows = np.array([[[3.0] * E, [6e4] * E, [6e4, -6e4] * (E // 2)]])
    layer = Residual(keras.layers.Dense(E, dtype=dtype), dtype=dtype)
    assert np.isfinite(ops.convert_to_numpy(ops.cast(layer(rows), "float32")))[
        0, :2
    ].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.5}, r"Received: dropout=1\.5"),
        ({"layer_norm_epsilon": 0.0}, r"Received: layer_norm_epsilon=0\.0"),
    ],
)
def test_a_nonsense_argument_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        Residual(Double(), **options)

"""Local attention against dense attention under the window's mask."""

import numpy as np
import pytest
from backend_functions import output_and_gradients
from backend_functions import swift
from keras import ops
from window_cases import WINDOWS
from window_cases import visible_in

from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.dropout import dropout
from keras_tfm.ops.local_attention import local_attention
from keras_tfm.ops.local_attention import spread_weights
from keras_tfm.ops.windows import Band
from keras_tfm.ops.windows import OwnAndPreviousBlock
from keras_tfm.ops.windows import OwnBlock

B, H, T, D, DV = 2, 3, 13, 5, 7


def inputs(length=T, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(B, H, length, size) for size in (D, D, DV)]
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


def window_mask(window, length, causal):
    seen = [
        [visible_in(window, t, s) and (s <= t or not causal)]
        for t in range(length)
        for s in range(length)
    ]
    return np.array(seen).reshape(1, 1, length, length)


def dense(tensors, window, masks=(), causal=False, bias=None):
    mask = window_mask(window, tensors[0].shape[2], causal)
    for one in masks:
        mask = mask & one
    return dot_product_attention(*tensors, mask, bias)


def assert_same(length, windows, masks=(), causal=False):
    """Compare the outputs and the weights in several windows."""

    def both(*tensors):
        found = []
        for window in windows:
            output, weights = local_attention(*tensors, window, masks, causal)
            weights = spread_weights(weights, window, B, length)
            expected = dense(tensors, window, masks, causal)
            found.append(((output, weights), expected))
        return found

    tensors = map(ops.convert_to_tensor, inputs(length))
    for ours, expected in swift(both)(*tensors):
        np.testing.assert_allclose(ours[0], expected[0], atol=1e-5)
        np.testing.assert_allclose(ours[1], expected[1], atol=1e-6)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", range(1, 41))
def test_it_is_dense_attention_at_every_length(length, causal):
    windows = (OwnBlock(5), OwnAndPreviousBlock(3), Band(7, 2))
    assert_same(length, windows, causal=causal)


@pytest.mark.parametrize("causal", [True, False])
def test_it_is_dense_attention_in_every_window(causal):
    assert_same(37, WINDOWS, causal=causal)


SHAPES = [
    (B, 1, 1, T),
    (1, 1, T, T),
    (B, 1, T, T),
    (B, H, T, T),
    (1, H, T, 1),
    (B, 1, T, 1),
    (1, 1, 1, T),
    (1, 1, 1, 1),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_mask_of_any_shape_is_cut_with_it(shape):
    mask = np.random.default_rng(7).random(shape) < 0.6
    padding = np.arange(T) < np.array([T, 6])[:, None, None, None]
    windows = (OwnBlock(4), OwnAndPreviousBlock(5), Band(3, 17))
    assert_same(T, windows, (mask, padding), causal=True)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("causal", [True, False])
def test_the_gradients_are_those_of_dense_attention(causal, jit):
    window = OwnAndPreviousBlock(4)
    padding = np.arange(T) < np.array([T, 6])[:, None, None, None]

    def local(*tensors):
        return local_attention(*tensors, window, (padding,), causal)[0]

    def expected(*tensors):
        return dense(tensors, window, (padding,), causal)[0]

    weights = np.random.default_rng(9).normal(size=(B, H, T, DV))
    weights = weights.astype("float32")
    output, found = output_and_gradients(local, weights, inputs(), jit)
    wanted_output, wanted = output_and_gradients(
        expected, weights, inputs(), jit
    )
    np.testing.assert_allclose(output, wanted_output, atol=1e-5)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(
    "window", [OwnBlock(4), OwnAndPreviousBlock(4), Band(3, 2)], ids=repr
)
def test_scores_of_distances_are_those_of_dense_attention(window):
    table = np.random.default_rng(5).normal(size=(H, 401)).astype("float32")

    def scores_of(distances):
        return ops.take(ops.convert_to_tensor(table), distances + 200, axis=1)

    places = np.arange(T)
    bias = table[:, places[None] - places[:, None] + 200][None]
    tensors = inputs()
    output, _ = local_attention(*tensors, window, scores_of=scores_of)
    expected, _ = dense(tensors, window, bias=bias)
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_the_weights_are_those_before_the_dropout():
    seed = np.array([2017, 612], "uint32")
    tensors = inputs()
    window = OwnAndPreviousBlock(4)
    kept, weights = local_attention(*tensors, window)
    dropped, same = local_attention(
        *tensors, window, drop=lambda weights: dropout(weights, 0.5, seed)
    )
    np.testing.assert_array_equal(weights, same)
    assert np.abs(ops.convert_to_numpy(dropped - kept)).max() > 0.1


def test_what_hides_behind_a_mask_reaches_nothing():
    query, key, value = inputs()
    hidden = np.arange(T) < np.array([T, 6])[:, None, None, None]
    key[1, :, 6:], value[1, :, 6:] = 1e9, -1e9
    window = OwnAndPreviousBlock(4)
    output, _ = local_attention(query, key, value, window, (hidden,))
    expected, _ = dense(inputs(), window, (hidden,))
    # Blocks of 4: from the third on row 1 sees nothing at all.
    np.testing.assert_allclose(output, expected, atol=1e-5)
    assert (ops.convert_to_numpy(output)[1, :, 12:] == 0.0).all()

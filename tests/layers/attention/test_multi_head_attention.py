"""Attention to a context against NumPy, and its decoding step."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops
from layer_checks import randomise
from numpy_reference import all_masks
from numpy_reference import multi_head_attention

from keras_tfm.layers import MultiHeadAttention

B, T, S, H, D, DV, E, C = 2, 5, 7, 3, 11, 13, 17, 19
rng = np.random.default_rng(0)
QUERY = rng.normal(size=(B, T, E)).astype("float32")
VALUE = rng.normal(size=(B, S, C)).astype("float32")
KEY = rng.normal(size=(B, S, C + 4)).astype("float32")
PADDING = np.array([[True] * S, [True] * 3 + [False] * (S - 3)])


def make(key_shape=(B, S, C + 4), **options):
    layer = MultiHeadAttention(H, **{"key_dim": D, "value_dim": DV, **options})
    layer.build((B, T, E), (B, S, C), key_shape)
    randomise(layer)
    return layer


def dense(layer, x):
    kernel, *bias = layer.get_weights()
    return x @ kernel + (bias[0] if bias else 0.0)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_equals_the_formula_in_numpy(use_bias, rank):
    layer = make(use_bias=use_bias)
    shape = {2: (T, S), 3: (B, T, S), 4: (B, H, T, S)}[rank]
    mask = np.random.default_rng(rank).random(shape) < 0.6
    output, weights = layer(
        QUERY,
        VALUE,
        KEY,
        padding_mask=PADDING,
        attention_mask=mask,
        return_attention_scores=True,
    )
    heads, expected = multi_head_attention(
        dense(layer.query, QUERY),
        dense(layer.key, KEY),
        dense(layer.value, VALUE),
        H,
        all_masks(B, H, T, S, padding=PADDING, attention=mask),
    )
    expected_output = dense(layer.attention_output, heads)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(output, expected_output, atol=1e-4)


def test_the_value_is_the_key_where_no_key_is_given():
    layer = make(key_shape=(B, S, C))
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(QUERY, VALUE)),
        ops.convert_to_numpy(layer(QUERY, VALUE, VALUE)),
    )


@settings(max_examples=5)
@given(st.permutations(range(S)))
def test_the_order_of_the_context_does_not_matter(order):
    layer = make()
    expected = layer(QUERY, VALUE, KEY, padding_mask=PADDING)
    result = layer(
        QUERY, VALUE[:, order], KEY[:, order], padding_mask=PADDING[:, order]
    )
    np.testing.assert_allclose(result, expected, atol=1e-4)


@pytest.mark.parametrize(("target", "source"), [(5, 7), (7, 5), (1, 4)])
def test_the_last_query_is_aligned_with_the_last_key(target, source):
    layer = MultiHeadAttention(H, key_dim=D)
    query, value = (
        QUERY[:, :1].repeat(target, 1),
        VALUE[:, :1].repeat(source, 1),
    )
    _, weights = layer(
        query, value, use_causal_mask=True, return_attention_scores=True
    )
    weights = ops.convert_to_numpy(weights)
    for t in range(target):
        seen = max(0, source - target + t + 1)
        # All keys are alike, so that what is seen shares the weight.
        np.testing.assert_allclose(
            weights[:, :, t, :seen], 1.0 / max(seen, 1), atol=1e-6
        )
        assert (weights[:, :, t, seen:] == 0.0).all()


def test_steps_give_what_the_call_gives():
    layer = make()
    expected, expected_weights = layer(
        QUERY, VALUE, KEY, padding_mask=PADDING, return_attention_scores=True
    )
    cache = layer.project_context(VALUE, KEY, PADDING)
    for positions in (slice(0, 1), slice(1, 4), slice(4, 5)):
        output, weights = layer.step(
            QUERY[:, positions], cache, PADDING, return_attention_scores=True
        )
        np.testing.assert_allclose(
            output, ops.convert_to_numpy(expected)[:, positions], atol=1e-5
        )
        np.testing.assert_allclose(
            weights,
            ops.convert_to_numpy(expected_weights)[:, :, positions],
            atol=1e-5,
        )


def test_a_padded_context_full_of_nan_is_projected_clean():
    layer = make()
    spoilt = np.where(PADDING[..., None], VALUE, np.nan).astype("float32")
    for part in layer.project_context(spoilt, KEY, PADDING):
        assert np.isfinite(ops.convert_to_numpy(part)).all()


def test_the_parameters_are_counted_by_the_formula():
    layer = MultiHeadAttention(H)
    layer.build((None, None, H * D), (None, None, C))
    width = H * D
    expected = 2 * (width * width + width) + 2 * (C * width + width)
    assert layer.count_params() == expected


def test_shapes_are_right_where_all_widths_differ():
    layer = MultiHeadAttention(H, key_dim=D, value_dim=DV)
    output, weights = layer(
        keras.Input((T, E)),
        keras.Input((S, C)),
        keras.Input((S, C + 4)),
        return_attention_scores=True,
    )
    assert output.shape == (None, T, E)
    assert weights.shape == (None, H, T, S)

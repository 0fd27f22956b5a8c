"""Self-attention against NumPy, its symmetry, and decoding step by step."""

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
from keras_tfm.layers import MultiHeadSelfAttention

B, T, H, D, DV, E = 2, 5, 3, 7, 11, 13
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")


def make(**options):
    layer = MultiHeadSelfAttention(
        H, **{"key_dim": D, "value_dim": DV, **options}
    )
    layer.build((B, T, E))
    randomise(layer)
    return layer


def test_an_average_by_hand():
    layer = MultiHeadSelfAttention(1, use_bias=False)
    layer.build((1, 2, 1))
    # Queries 0, keys and values as the inputs, an output twice as large.
    layer.set_weights([np.array([[0.0, 1.0, 1.0]]), np.array([[2.0]])])
    # All scores are 0, so each position averages 3 and 5.
    result = layer(np.array([[[3.0], [5.0]]]))
    np.testing.assert_allclose(result, [[[8.0], [8.0]]], rtol=1e-6)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_equals_the_formula_in_numpy(use_bias, causal):
    layer = make(use_bias=use_bias)
    output, weights = layer(
        X, use_causal_mask=causal, return_attention_scores=True
    )
    joined = layer.query_key_value.get_weights()
    projected = X @ joined[0] + (joined[1] if use_bias else 0.0)
    query, key, value = np.split(projected, [H * D, 2 * H * D], axis=-1)
    heads, expected = multi_head_attention(
        query, key, value, H, all_masks(B, H, T, T, causal=causal)
    )
    last = layer.attention_output.get_weights()
    heads = heads @ last[0] + (last[1] if use_bias else 0.0)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(output, heads, atol=1e-4)


def test_equals_general_attention_of_a_sequence_to_itself():
    layer = make()
    general = MultiHeadAttention(H, key_dim=D, value_dim=DV)
    general.build((B, T, E), (B, T, E))
    kernel, bias = layer.query_key_value.get_weights()
    parts = zip(
        np.split(kernel, [H * D, 2 * H * D], axis=1),
        np.split(bias, [H * D, 2 * H * D]),
        strict=True,
    )
    general.set_weights(
        [w for part in parts for w in part]
        + layer.attention_output.get_weights()
    )
    np.testing.assert_allclose(layer(X), general(X, X), atol=1e-5)


@settings(max_examples=5)
@given(st.permutations(range(T)))
def test_a_permutation_of_the_inputs_permutes_the_outputs(order):
    layer = make()
    output, weights = layer(X, return_attention_scores=True)
    permuted, permuted_weights = layer(
        X[:, order], return_attention_scores=True
    )
    np.testing.assert_allclose(
        permuted, ops.convert_to_numpy(output)[:, order], atol=1e-5
    )
    np.testing.assert_allclose(
        permuted_weights,
        ops.convert_to_numpy(weights)[:, :, order][:, :, :, order],
        atol=1e-5,
    )


def test_each_head_may_have_a_mask_of_its_own():
    layer = make()
    mask = np.ones((1, H, T, T), bool)
    mask[0, 1, :, 2] = False
    _, weights = layer(X, attention_mask=mask, return_attention_scores=True)
    weights = ops.convert_to_numpy(weights)
    assert (weights[:, 1, :, 2] == 0.0).all()
    assert (weights[:, [0, 2], :, 2] > 0.0).all()


def test_a_position_bias_is_added_to_the_scores():
    layer = make()
    bias = np.zeros((T, T), "float32")
    bias[:, 3] = 1e3
    _, weights = layer(X, position_bias=bias, return_attention_scores=True)
    np.testing.assert_allclose(
        ops.convert_to_numpy(weights)[..., 3], 1.0, atol=1e-6
    )


def test_the_parameters_are_counted_by_the_formula():
    layer = MultiHeadSelfAttention(H)
    layer.build((None, None, H * D))
    width = H * D
    assert layer.count_params() == 4 * width * width + 4 * width
    without = MultiHeadSelfAttention(H, use_bias=False)
    without.build((None, None, width))
    assert without.count_params() == 4 * width * width


def test_the_three_parts_are_drawn_as_three_matrices():
    # One matrix of three times the width would be drawn narrower.
    layer = MultiHeadSelfAttention(1)
    layer.build((None, None, 64))
    kernel = ops.convert_to_numpy(layer.query_key_value.kernel)
    limit = np.sqrt(6 / (64 + 64))
    parts = np.split(kernel, 3, axis=1)
    for part in parts:
        assert 0.98 * limit < np.abs(part).max() <= limit
    assert np.abs(parts[0] - parts[1]).min() > 0.0


@pytest.mark.parametrize("chunks", [[1] * T, [T], [2, 3], [3, 1, 1]])
@pytest.mark.parametrize("max_length", [T, T + 6])
def test_steps_give_what_the_causal_call_gives(chunks, max_length):
    layer = make()
    expected, expected_weights = layer(
        X, use_causal_mask=True, return_attention_scores=True
    )
    cache, index = layer.initial_cache(B, max_length), 0
    for size in chunks:
        positions = slice(index, index + size)
        output, cache, weights = layer.step(
            X[:, positions], cache, index, return_attention_scores=True
        )
        np.testing.assert_allclose(
            output, ops.convert_to_numpy(expected)[:, positions], atol=1e-5
        )
        weights = ops.convert_to_numpy(weights)
        np.testing.assert_allclose(
            weights[..., :T],
            ops.convert_to_numpy(expected_weights)[:, :, positions],
            atol=1e-5,
        )
        assert (weights[..., T:] == 0.0).all()
        index += size


def test_steps_leave_padded_positions_out():
    layer = make()
    padding = np.array([[False, True, True, True, True], [True] * T])
    expected = layer(X, padding_mask=padding, use_causal_mask=True)
    expected = ops.convert_to_numpy(expected)
    cache = layer.initial_cache(B, T)
    for index in range(T):
        output, cache = layer.step(
            X[:, index : index + 1], cache, index, padding_mask=padding
        )
        np.testing.assert_allclose(
            ops.convert_to_numpy(output)[:, 0][padding[:, index]],
            expected[:, index][padding[:, index]],
            atol=1e-5,
        )


def test_an_empty_cache_has_the_compute_dtype():
    layer = make(dtype="mixed_bfloat16")
    keys, values = layer.initial_cache(B, 17)
    assert tuple(keys.shape) == (B, H, D, 17)
    assert tuple(values.shape) == (B, H, 17, DV)
    assert keras.backend.standardize_dtype(keys.dtype) == "bfloat16"

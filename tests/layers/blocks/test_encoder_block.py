"""An encoder block against NumPy, and its symmetry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops
from layer_checks import randomise
from numpy_reference import all_masks
from numpy_reference import layer_norm
from numpy_reference import multi_head_attention

from keras_tfm.layers import EncoderBlock

B, T, H, D, F = 2, 5, 3, 7, 11
E = H * D
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")
PADDING = np.array([[True] * T, [True] * 3 + [False] * 2])


def make(**options):
    block = EncoderBlock(H, F, **options)
    block.build((B, T, E))
    randomise(block)
    return block


def by_numpy(block, x, padding, causal):
    """The block's formula, from its weights alone."""
    attend, work = block.self_attention, block.feed_forward
    kernel, bias, last, last_bias = attend.sublayer.get_weights()
    w1, b1, w2, b2 = work.sublayer.get_weights()

    def attention(x):
        query, key, value = np.split(x @ kernel + bias, 3, axis=-1)
        mask = all_masks(B, H, T, T, padding=padding, causal=causal)
        heads, _ = multi_head_attention(query, key, value, H, mask)
        return heads @ last + last_bias

    def network(x):
        return np.maximum(x @ w1 + b1, 0.0) @ w2 + b2

    for residual, function in ((attend, attention), (work, network)):
        norm = residual.norm.get_weights()
        if block.normalize_first:
            x = x + function(layer_norm(x, *norm))
        else:
            x = layer_norm(x + function(x), *norm)
    return x


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_equals_the_formula_in_numpy(pre_norm, causal):
    block = make(normalize_first=pre_norm)
    result = block(X, padding_mask=PADDING, use_causal_mask=causal)
    expected = by_numpy(block, X, PADDING, causal)
    np.testing.assert_allclose(
        ops.convert_to_numpy(result)[PADDING], expected[PADDING], atol=1e-3
    )


@settings(max_examples=5)
@given(st.permutations(range(T)), st.booleans())
def test_a_permutation_of_the_inputs_permutes_the_outputs(order, pre_norm):
    block = make(normalize_first=pre_norm)
    result = ops.convert_to_numpy(block(X, padding_mask=PADDING))[:, order]
    permuted = block(X[:, order], padding_mask=PADDING[:, order])
    real = PADDING[:, order]
    np.testing.assert_allclose(
        ops.convert_to_numpy(permuted)[real], result[real], atol=1e-4
    )


def test_the_parameters_are_counted_by_the_formula():
    block = make()
    attention = 4 * E * E + 4 * E
    network = E * F + F + F * E + E
    assert block.count_params() == attention + network + 2 * 2 * E


def test_pre_norm_is_the_identity_where_both_parts_give_zeros():
    block = make()
    zeros = [
        np.zeros_like(weight)
        for weight in block.self_attention.sublayer.get_weights()
    ]
    block.self_attention.sublayer.set_weights(zeros)
    zeros = [
        np.zeros_like(weight)
        for weight in block.feed_forward.sublayer.get_weights()
    ]
    block.feed_forward.sublayer.set_weights(zeros)
    np.testing.assert_array_equal(ops.convert_to_numpy(block(X)), X)

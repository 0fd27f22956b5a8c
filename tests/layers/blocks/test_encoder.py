"""A stack of encoder blocks: scores of every block, symmetry, numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops
from layer_checks import randomise
from numpy_reference import layer_norm

from keras_tfm.layers import Encoder

B, T, H, D, F, LAYERS = 2, 5, 3, 7, 11, 2
E = H * D
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")


def make(**options):
    encoder = Encoder(LAYERS, H, F, **options)
    encoder.build((B, T, E))
    randomise(encoder)
    return encoder


def test_of_parts_that_give_zeros_only_the_final_norm_is_left():
    encoder = make()
    for block in encoder.blocks:
        for part in (block.self_attention, block.feed_forward):
            weights = part.sublayer.get_weights()
            part.sublayer.set_weights([0.0 * weight for weight in weights])
    expected = layer_norm(X, *encoder.norm.get_weights())
    np.testing.assert_allclose(encoder(X), expected, atol=1e-5)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_scores_come_from_each_block(pre_norm):
    encoder = make(normalize_first=pre_norm)
    _, weights = encoder(X, return_attention_scores=True)
    assert len(weights) == LAYERS
    x = X
    for block, ours in zip(encoder.blocks, weights, strict=True):
        x, expected = block(x, return_attention_scores=True)
        np.testing.assert_allclose(ours, expected, atol=1e-6)


@settings(max_examples=4)
@given(st.permutations(range(T)), st.booleans())
def test_a_permutation_of_the_inputs_permutes_the_outputs(order, pre_norm):
    encoder = make(normalize_first=pre_norm)
    result = ops.convert_to_numpy(encoder(X))[:, order]
    np.testing.assert_allclose(encoder(X[:, order]), result, atol=1e-3)


def test_the_parameters_are_counted_by_the_formula():
    block = 4 * E * E + 4 * E + E * F + F + F * E + E + 2 * 2 * E
    assert make().count_params() == LAYERS * block + 2 * E
    assert make(normalize_first=False).count_params() == LAYERS * block


def test_one_row_does_not_depend_on_the_others():
    encoder = make()
    np.testing.assert_allclose(
        encoder(X[1:]), ops.convert_to_numpy(encoder(X))[1:], atol=1e-5
    )

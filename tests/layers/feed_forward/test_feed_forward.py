"""The position-wise network: its formula and its independence of places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops

from keras_tfm.layers import FeedForward

B, T, E, F = 2, 5, 3, 7


def test_matches_the_formula():
    layer = FeedForward(2, activation="relu")
    layer.build((1, 1, 2))
    w1, b1 = np.array([[1, -1], [1, 1]]), np.array([0, 1])
    w2, b2 = np.array([[2, 0], [0, 3]]), np.array([1, 1])
    layer.set_weights([w1, b1, w2, b2])
    # By hand: [3, 1] @ w1 + b1 = [4, -1]; relu = [4, 0]; @ w2 + b2 = [9, 1].
    np.testing.assert_allclose(layer(np.array([[[3.0, 1.0]]])), [[[9.0, 1.0]]])


@settings(max_examples=5)
@given(st.permutations(range(T)))
def test_every_position_is_worked_on_alone(order):
    layer = FeedForward(F)
    x = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")
    result = ops.convert_to_numpy(layer(x))
    np.testing.assert_allclose(layer(x[:, order]), result[:, order], atol=1e-5)


def test_the_parameters_are_counted_by_the_formula():
    layer = FeedForward(F)
    layer.build((None, None, E))
    assert layer.count_params() == E * F + F + F * E + E


def test_dropout_falls_on_the_intermediate_values():
    layer = FeedForward(F, activation="linear", dropout=0.5)
    layer.build((1, 1, 1))
    layer.set_weights(
        [np.ones((1, F)), np.zeros(F), np.ones((F, 1)), np.zeros(1)]
    )
    results = layer(np.ones((1, 40, 1)), training=True)
    results = ops.convert_to_numpy(results).ravel()
    # Each of the F values is 0 or doubled.
    assert {value % 2.0 for value in results} == {0.0}
    assert len(set(results)) > 2
    assert max(results) <= 2.0 * F


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"intermediate_dim": 0}, "Received: intermediate_dim=0"),
        ({"intermediate_dim": 7.0}, r"Received: intermediate_dim=7\.0"),
        ({"dropout": 1.0}, r"must be a number in \[0, 1\). Received: dropout"),
    ],
)
def test_a_nonsense_argument_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        FeedForward(**{"intermediate_dim": F, **options})

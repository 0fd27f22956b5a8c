"""Halting weights against a loop over positions and steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops

from keras_tfm.ops.halting import THRESHOLD
from keras_tfm.ops.halting import halting_step

probabilities = st.lists(
    st.floats(0, 1, width=32), min_size=1, max_size=7
).filter(bool)


def run(probabilities, threshold=THRESHOLD):
    """Return the weights and what was running of one position."""
    total = ops.zeros((1, 1))
    weights, running = [], []
    for step, probability in enumerate(probabilities):
        weight, total, was_running = halting_step(
            ops.full((1, 1), probability, "float32"),
            total,
            last=step + 1 == len(probabilities),
            threshold=threshold,
        )
        weights.append(float(weight[0, 0]))
        running.append(bool(was_running[0, 0]))
    assert float(total[0, 0]) == 1.0
    return weights, running


def by_hand(probabilities, threshold):
    weights, total = [], np.float32(0)
    for probability in map(np.float32, probabilities):
        if total + probability > np.float32(threshold):
            break
        weights.append(float(probability))
        total += probability
    else:
        # Nothing passed the threshold: the last step gets the rest.
        total -= np.float32(weights.pop())
    weights.append(float(1 - total))
    return weights


@pytest.mark.parametrize(
    ("given_probabilities", "expected"),
    [
        ([0.5, 0.25, 0.5, 0.9], [0.5, 0.25, 0.25, 0.0]),
        ([0.995, 0.5], [1.0, 0.0]),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.7]),
        ([0.0, 0.0], [0.0, 1.0]),
        ([0.3], [1.0]),
        # The sum is the threshold and does not pass it.
        ([0.75, 0.0, 0.5], [0.75, 0.0, 0.25]),
    ],
)
def test_the_weights_are_those_of_hand(given_probabilities, expected):
    threshold = 0.75 if given_probabilities[0] == 0.75 else THRESHOLD
    weights, _ = run(given_probabilities, threshold)
    np.testing.assert_allclose(weights, expected, atol=1e-6)


@settings(max_examples=40)
@given(probabilities, st.sampled_from([0.5, 0.9, THRESHOLD]))
def test_weights_sum_to_one_and_end_where_a_position_halts(given_, threshold):
    weights, running = run(given_, threshold)
    assert sum(weights) == pytest.approx(1, abs=1e-6)
    expected = by_hand(given_, threshold)
    np.testing.assert_allclose(weights[: len(expected)], expected, atol=1e-6)
    assert weights[len(expected) :] == [0.0] * (len(given_) - len(expected))
    assert running == [step < len(expected) for step in range(len(given_))]


def test_positions_halt_on_their_own():
    total = ops.zeros((1, 2))
    first, total, _ = halting_step(ops.array([[0.995, 0.2]]), total, False)
    second, total, running = halting_step(ops.full((1, 2), 0.3), total, False)
    np.testing.assert_allclose(first, [[1.0, 0.2]], atol=1e-6)
    np.testing.assert_allclose(second, [[0.0, 0.3]], atol=1e-6)
    np.testing.assert_array_equal(running, [[False, True]])
    np.testing.assert_allclose(total, [[1.0, 0.5]], atol=1e-6)

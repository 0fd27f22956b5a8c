"""Halting probabilities, what they make of the states, and their cost."""

import numpy as np
import pytest
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import AdaptiveHalting

B, T, E, STEPS = 2, 5, 7, 4
STATES = np.random.default_rng(0).normal(size=(STEPS, B, T, E))
STATES = STATES.astype("float32")
# Some of the states say halt, others go on: the positions take 1 to 4 steps.
STATES *= np.random.default_rng(1).choice(
    np.float32([0.1, 4.0]), (STEPS, B, T, 1)
)


def make(**options):
    layer = AdaptiveHalting(**options)
    layer.build((B, T, E))
    randomise(layer)
    return layer


def probabilities(layer):
    kernel, bias = layer.get_weights()
    return 1 / (1 + np.exp(-(STATES @ kernel + bias)[..., 0]))


def weigh(chances, threshold=0.99):
    """Return the weights of one position, by a loop: an array (steps,)."""
    weights, total = np.zeros(len(chances)), 0.0
    for step, chance in enumerate(chances):
        if total + chance > threshold or step + 1 == len(chances):
            weights[step] = 1 - total
            return weights, step + 1 + weights[step]
        weights[step] = chance
        total += chance
    return None


def expected(layer):
    chances = probabilities(layer)
    weights, times = np.zeros((STEPS, B, T)), np.zeros((B, T))
    for row in range(B):
        for place in range(T):
            weights[:, row, place], times[row, place] = weigh(
                chances[:, row, place]
            )
    return weights, times


def run(layer):
    found = layer.begin(STATES[0])
    for step, state in enumerate(STATES):
        found.decide(state, last=step + 1 == STEPS)
        found.collect(state)
    return found


def test_the_probability_is_a_sigmoid_of_each_position():
    layer = make()
    for state, chance in zip(STATES, probabilities(layer), strict=True):
        np.testing.assert_allclose(layer(state), chance, atol=1e-6)


def test_the_weights_and_the_ponder_times_are_those_of_a_loop():
    layer = make()
    weights, times = expected(layer)
    assert len(set(np.floor(times).ravel())) > 2
    found = run(layer)
    np.testing.assert_allclose(np.stack(found.weights), weights, atol=1e-6)
    np.testing.assert_allclose(found.ponder_times, times, atol=1e-5)
    np.testing.assert_allclose(np.sum(found.weights, axis=0), 1, atol=1e-6)


def test_graves_sums_the_states_by_their_weights():
    layer = make()
    weights, _ = expected(layer)
    output = np.einsum("nbt,nbte->bte", weights, STATES)
    np.testing.assert_allclose(run(layer).output, output, atol=1e-5)


def test_tensor2tensor_goes_towards_each_state():
    layer = make(accumulation="tensor2tensor")
    weights, _ = expected(layer)
    output = np.zeros((B, T, E))
    for weight, state in zip(weights[..., None], STATES, strict=True):
        output = weight * state + (1 - weight) * output
    np.testing.assert_allclose(run(layer).output, output, atol=1e-5)


def test_the_cost_is_the_mean_over_real_tokens():
    layer = make(ponder_cost=0.3)
    _, times = expected(layer)
    found = run(layer)
    assert float(found.cost()) == pytest.approx(0.3 * times.mean(), abs=1e-5)
    real = np.arange(T) < np.array([[3], [5]])
    assert float(found.cost(ops.array(real))) == pytest.approx(
        0.3 * times[real].mean(), abs=1e-5
    )
    nothing = ops.array(np.zeros((B, T), bool))
    assert float(found.cost(nothing)) == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", 0.0),
        ("threshold", 1.0),
        ("ponder_cost", -0.1),
        ("accumulation", "sum"),
    ],
)
def test_what_is_out_of_range_is_an_error(name, value):
    with pytest.raises(ValueError, match=f"`{name}`.*{value}"):
        AdaptiveHalting(**{name: value})

"""Sampling: tokens come as often as they should, and the same every time."""

import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from generation.toy_steps import PAD
from generation.toy_steps import array
from generation.toy_steps import log_probabilities
from generation.toy_steps import n_best
from generation.toy_steps import total
from generation.toy_steps import trees
from generation.toy_steps import unpadded
from keras import ops

from keras_tfm.generation import GreedyGenerator
from keras_tfm.generation import SamplingGenerator

ROWS, LENGTH = 8009, 5
# 0 pads; the probabilities of the others are far apart.
LOGITS = np.array([1.0, 2.0, -1.0, 0.5, 1.5, -3.0, 0.0], "float32")


def sampled(**kwargs):
    """Draw one token for each row from `LOGITS`."""
    generator = SamplingGenerator(1, **kwargs)

    def step(last, cache, index):
        logits = ops.convert_to_tensor(LOGITS)
        return ops.broadcast_to(logits, (ROWS, 1, len(LOGITS))), cache

    run = swift(lambda: generator(step, (), np.ones(ROWS, bool)))
    ids, scores = run()
    return array(ids)[:, 0], array(scores)


def expected_probabilities(temperature, top_k, top_p):
    scores = LOGITS.astype("float64") / temperature
    scores[PAD] = -np.inf
    order = np.argsort(-scores)
    if top_k is not None:
        scores[order[top_k:]] = -np.inf
    probabilities = np.exp(scores) / np.exp(scores).sum()
    if top_p is not None:
        before = np.cumsum(probabilities[order]) - probabilities[order]
        probabilities[order[before >= top_p]] = 0
    return probabilities / probabilities.sum()


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [
        (1.0, None, None),
        (0.5, None, None),
        (3.0, None, None),
        (1.0, 3, None),
        (1.0, None, 0.7),
        (2.0, 4, 0.8),
        (1.0, 99, 1.0),
    ],
)
def test_tokens_come_as_often_as_they_should(temperature, top_k, top_p):
    tokens, scores = sampled(temperature=temperature, top_k=top_k, top_p=top_p)
    expected = ROWS * expected_probabilities(temperature, top_k, top_p)
    observed = np.bincount(tokens, minlength=len(LOGITS))
    assert (observed[expected == 0] == 0).all()
    kept = expected > 0
    # At most 5 degrees of freedom: above 24 once in 4,600 times.
    difference = (observed - expected)[kept] ** 2 / expected[kept]
    assert difference.sum() < 24
    # The score is what the model says, not what was drawn from.
    np.testing.assert_allclose(
        scores, log_probabilities(LOGITS)[tokens], atol=1e-5
    )


def test_steps_and_rows_draw_for_themselves():
    # At each place 3 and 4 are as likely, and nothing else is.
    logits = np.full_like(trees(1, LENGTH), -50.0)
    logits[..., [3, 4]] = 0.0
    logits = np.repeat(logits, 701, axis=0)
    ids, _ = n_best(SamplingGenerator(LENGTH), logits)
    threes = ids[:, 0] == 3
    counts = np.bincount(threes @ 2 ** np.arange(LENGTH), minlength=32)
    # 31 degrees of freedom: above 70 once in 13,000 times.
    expected = 701 / 32
    assert ((counts - expected) ** 2 / expected).sum() < 70


def test_the_same_seed_draws_the_same_and_another_does_not():
    logits = trees(23, LENGTH)
    generator = SamplingGenerator(LENGTH, seed=3)
    ids, scores = n_best(generator, logits)
    again, _ = n_best(generator, logits)
    np.testing.assert_array_equal(again, ids)
    other, _ = n_best(SamplingGenerator(LENGTH, seed=4), logits)
    assert (other != ids).any(axis=(1, 2)).mean() > 0.5
    for row, tree in enumerate(log_probabilities(logits)):
        expected = total(tree, unpadded(ids[row, 0]))
        np.testing.assert_allclose(scores[row, 0], expected, atol=1e-5)


def test_a_row_follows_its_own_seed_and_not_its_place():
    logits = trees(11, LENGTH)
    generator = SamplingGenerator(LENGTH)
    ids, _ = n_best(generator, logits)
    rows = np.array([7, 0, 10, 2])
    some, _ = n_best(generator, logits[rows], seeds=rows.astype("int32"))
    np.testing.assert_array_equal(some, ids[rows])
    same = np.zeros_like(logits)
    equal, _ = n_best(generator, same, seeds=np.full(11, 5, "int32"))
    assert (equal == equal[0]).all()
    by_number, _ = n_best(generator, same)
    assert len({tuple(x) for x in by_number[:, 0].tolist()}) > 3


def test_one_token_to_draw_from_is_greedy():
    logits = trees(19, LENGTH)
    ids, scores = n_best(GreedyGenerator(LENGTH), logits)
    for kwargs in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        found, found_scores = n_best(
            SamplingGenerator(LENGTH, **kwargs), logits
        )
        np.testing.assert_array_equal(found, ids)
        np.testing.assert_allclose(found_scores, scores, atol=1e-5)


def test_compiled_draws_are_the_same():
    ids, scores = sampled(top_p=0.9, temperature=1.3)
    generator = SamplingGenerator(1, top_p=0.9, temperature=1.3)

    def run(logits):
        logits = ops.broadcast_to(logits, (ROWS, 1, len(LOGITS)))
        return generator(
            lambda last, cache, index: (logits, cache), (), np.ones(ROWS, bool)
        )

    found, found_scores = compiled(run)(ops.convert_to_tensor(LOGITS))
    # A last bit of a logarithm may tip one draw in many.
    assert (array(found)[:, 0] != ids).mean() < 1e-3
    same = array(found)[:, 0] == ids
    np.testing.assert_allclose(
        array(found_scores)[same], scores[same], atol=1e-5
    )


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"temperature": 0.0}, "`temperature` must be .*0.0"),
        ({"temperature": -1.0}, "`temperature` must be .*-1.0"),
        ({"top_k": 0}, "`top_k` must be a whole number"),
        ({"top_k": 2.5}, "`top_k` must be a whole number"),
        ({"top_p": 0.0}, "`top_p` must be a number above 0 .*top_p=0.0"),
        ({"top_p": 1.5}, "at most 1. Received: top_p=1.5"),
    ],
)
def test_what_is_out_of_range_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        SamplingGenerator(3, **kwargs)

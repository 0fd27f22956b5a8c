"""The tokens that can come next, against NumPy."""

import numpy as np
import pytest
from generation.toy_steps import array
from generation.toy_steps import log_probabilities
from keras import ops

from keras_tfm.generation import NextTokens
from keras_tfm.ops.search import NEVER

B, K, V = 3, 5, 83


def some_logits(size=V):
    return np.random.default_rng(0).normal(size=(B, K, size)).astype("float32")


def test_log_probabilities_are_those_of_a_softmax():
    logits = some_logits()
    found = array(NextTokens(ops.convert_to_tensor(logits)).log_probabilities())
    np.testing.assert_allclose(found, log_probabilities(logits), atol=1e-5)


def test_great_logits_and_impossible_ones_stay_numbers():
    logits = np.array([[[1e31, 0.0, -np.inf]]], "float32")
    next_tokens = NextTokens(ops.convert_to_tensor(logits))
    scores, tokens = next_tokens.likeliest(2)
    assert array(tokens).tolist() == [[[0, 1]]]
    assert array(scores).tolist() == [[[0.0, np.float32(NEVER)]]]


@pytest.mark.parametrize("size", [7, V])
@pytest.mark.parametrize("count", [1, 3])
def test_the_likeliest_leave_out_what_is_forbidden(size, count):
    logits = some_logits(size)
    logits[..., [0, 2]] += 9.0  # The likeliest are forbidden.
    forbidden = [
        (0, True),
        (2, ops.convert_to_tensor(True)),
        (5, ops.convert_to_tensor(False)),
    ]
    expected = log_probabilities(logits)
    expected[..., [0, 2]] = NEVER
    next_tokens = NextTokens(ops.convert_to_tensor(logits), None, forbidden)
    np.testing.assert_allclose(array(next_tokens.scores()), expected, atol=1e-5)
    scores, tokens = map(array, next_tokens.likeliest(count))
    assert tokens.shape == scores.shape == (B, K, count)
    order = np.argsort(-expected, kind="stable")[..., :count]
    np.testing.assert_array_equal(tokens, order)
    best = np.take_along_axis(expected, order, -1)
    np.testing.assert_allclose(scores, best, atol=1e-5)


def test_of_equals_the_lowest_id_comes_first():
    logits = np.zeros((B, K, V), "float32")
    next_tokens = NextTokens(ops.convert_to_tensor(logits), None, [(1, True)])
    _, tokens = next_tokens.likeliest(3)
    assert (array(tokens) == [0, 2, 3]).all()


def test_what_is_not_allowed_keeps_the_probabilities_of_the_others():
    logits = some_logits()
    allowed = np.where(np.arange(V) % 2, logits, np.float32(NEVER))
    next_tokens = NextTokens(
        ops.convert_to_tensor(logits), ops.convert_to_tensor(allowed)
    )
    whole = log_probabilities(logits)
    expected = np.where(np.arange(V) % 2, whole, NEVER)
    scores, tokens = map(array, next_tokens.likeliest(4))
    order = np.argsort(-expected, kind="stable")[..., :4]
    np.testing.assert_array_equal(tokens, order)
    best = np.take_along_axis(expected, order, -1)
    np.testing.assert_allclose(scores, best, atol=1e-5)
    # What the model says of a token does not change.
    asked = np.random.default_rng(1).integers(0, V, (B, K), dtype="int32")
    found = array(next_tokens.of(ops.convert_to_tensor(asked)))
    expected = np.take_along_axis(whole, asked[..., None], -1)[..., 0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_where_fewer_are_allowed_the_last_scores_are_never():
    logits = np.zeros((1, 1, 3), "float32")
    logits[..., 1] = -np.inf
    next_tokens = NextTokens(ops.convert_to_tensor(logits), None, [(0, True)])
    scores, tokens = map(array, next_tokens.likeliest(3))
    np.testing.assert_allclose(scores[0, 0, 0], np.log(0.5), atol=1e-6)
    assert tokens[0, 0, 0] == 2
    assert (scores[0, 0, 1:] == np.float32(NEVER)).all()
    assert sorted(tokens[0, 0].tolist()) == [0, 1, 2]


def test_half_precision_is_summed_in_float32():
    logits = ops.cast(some_logits(), "bfloat16")
    found = NextTokens(logits).log_probabilities()
    exact = log_probabilities(array(ops.cast(logits, "float32")))
    np.testing.assert_allclose(array(found), exact, atol=1e-5)


# With 101 and 137 tokens the groups are searched, and some are left over.
@pytest.mark.parametrize("size", [3, 101, 137, 100])
@pytest.mark.parametrize("distinct", [5, 10**6])
def test_continuations_are_the_best_of_all_beams_together(size, distinct):
    rng = np.random.default_rng(size)
    logits = rng.integers(0, distinct, (7, 2, size)) * (9.0 / distinct)
    before = -rng.integers(0, 3, (7, 2)).astype("float32")
    before[3, 1] = NEVER
    logits, count = logits.astype("float32"), 4
    next_tokens = NextTokens(ops.convert_to_tensor(logits), None, [(0, True)])
    scores, beams, tokens = map(
        array, next_tokens.continuations(ops.convert_to_tensor(before), count)
    )
    totals = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    totals = totals + before[..., None]
    totals[..., 0] = NEVER
    flat = np.maximum(totals.reshape(7, -1), NEVER)
    expected = -np.sort(-flat, axis=1)[:, :count]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    np.testing.assert_allclose(
        np.take_along_axis(flat, beams * size + tokens, axis=1),
        expected,
        atol=1e-5,
    )
    for row in beams * size + tokens:
        assert len(set(row.tolist())) == count
    # Of the same beam and the same logit the lower id comes first.
    for row in range(7):
        for a, b in zip(range(count - 1), range(1, count), strict=True):
            one, other = tokens[row, a], tokens[row, b]
            if (
                one
                and other
                and beams[row, a] == beams[row, b]
                and (
                    logits[row, beams[row, a], one]
                    == logits[row, beams[row, b], other]
                )
            ):
                assert one < other

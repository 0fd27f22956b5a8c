"""What must not come next does not, and the scores stay the model's."""

import functools

import numpy as np
import pytest
from generation.toy_steps import END
from generation.toy_steps import PAD
from generation.toy_steps import array
from generation.toy_steps import log_probabilities
from generation.toy_steps import n_best
from generation.toy_steps import total
from generation.toy_steps import trees
from generation.toy_steps import unpadded
from keras import ops

from keras_tfm.generation import BannedTokens
from keras_tfm.generation import BeamSearchGenerator
from keras_tfm.generation import Constraint
from keras_tfm.generation import GreedyGenerator
from keras_tfm.generation import NoLengthPenalty
from keras_tfm.generation import NoRepeatNgram
from keras_tfm.generation import SamplingGenerator
from keras_tfm.ops.search import NEVER

LENGTH, ROWS = 5, 19


def beams(**kwargs):
    penalty = NoLengthPenalty()
    return BeamSearchGenerator(LENGTH, 3, length_penalty=penalty, **kwargs)


def greedy(**kwargs):
    return GreedyGenerator(LENGTH, **kwargs)


def sampling(**kwargs):
    return SamplingGenerator(LENGTH, seed=5, **kwargs)


@functools.cache
def free(make):
    """Return what is written without a constraint, from the same trees."""
    return n_best(make(), trees(ROWS, LENGTH))[0]


ALL = pytest.mark.parametrize("make", [greedy, beams, sampling])


def assert_scores_are_the_models(logits, ids, scores):
    """Check that to forbid tokens makes the others no likelier."""
    for row, tree in enumerate(log_probabilities(logits)):
        for hypothesis, score in zip(ids[row], scores[row], strict=True):
            if score > NEVER / 2:
                expected = total(tree, unpadded(hypothesis))
                np.testing.assert_allclose(score, expected, atol=1e-5)


@ALL
def test_banned_tokens_are_never_written(make):
    logits = trees(ROWS, LENGTH)
    assert np.isin(free(make), [1, 4]).any()
    ids, scores = n_best(make(constraints=[BannedTokens([4, 1])]), logits)
    assert not np.isin(ids, [1, 4]).any()
    assert_scores_are_the_models(logits, ids, scores)


@ALL
@pytest.mark.parametrize("size", [1, 2])
def test_no_ngram_is_written_twice(make, size):
    logits = trees(ROWS, LENGTH)

    def ngrams(ids):
        return [ids[i : i + size] for i in range(len(ids) - size + 1)]

    def repeats(ids):
        found = [ngrams(unpadded(x)) for x in ids.reshape(-1, LENGTH)]
        return sum(len(x) > len(set(x)) for x in found)

    assert repeats(free(make))
    ids, scores = n_best(make(constraints=[NoRepeatNgram(size)]), logits)
    assert not repeats(ids)
    assert_scores_are_the_models(logits, ids, scores)


@ALL
def test_where_nothing_is_allowed_the_sequence_ends(make):
    # Three tokens may be written once each, and the end is banned.
    constraints = [NoRepeatNgram(1), BannedTokens([END])]
    logits = trees(ROWS, LENGTH)
    ids, scores = n_best(make(constraints=constraints), logits)
    for hypothesis in ids.reshape(-1, LENGTH).tolist():
        assert sorted(hypothesis[:3]) == [1, 3, 4]
        assert hypothesis[3:] == [END, PAD]
    assert_scores_are_the_models(logits, ids, scores)


@ALL
def test_no_sequence_is_shorter_than_the_least_length(make):
    logits = trees(ROWS, LENGTH)
    assert ((free(make) != PAD).sum(-1) < 4).any()
    ids, scores = n_best(make(min_length=4), logits)
    lengths = (ids != PAD).sum(-1)[scores > NEVER / 2]
    assert lengths.min() == 4
    assert_scores_are_the_models(logits, ids, scores)
    # Also beside a constraint, which takes another way.
    other, other_scores = n_best(
        make(min_length=4, constraints=[BannedTokens([])]), logits
    )
    np.testing.assert_array_equal(other, ids)
    np.testing.assert_allclose(other_scores, scores, atol=1e-5)


@ALL
def test_a_prefix_goes_before_every_constraint(make):
    logits = trees(3, LENGTH)
    constraints = [NoRepeatNgram(1), BannedTokens([4])]
    prefix = np.array([[4, 4, 3], [3, END, PAD], [PAD, PAD, PAD]])
    ids, scores = n_best(
        make(constraints=constraints, min_length=3), logits, prefix=prefix
    )
    assert ids[0, 0, :3].tolist() == [4, 4, 3]
    assert not np.isin(ids[0, :, 3:], [3, 4]).any()
    assert ids[1, 0].tolist() == [3, END, PAD, PAD, PAD]
    assert (ids[1, 1:] == PAD).all()
    assert not (ids[2] == 4).any()
    assert_scores_are_the_models(logits, ids, scores)


def test_a_constraint_of_ones_own_is_asked_at_every_place():
    class Alternating(Constraint):
        """Even ids at even places, odd ones at odd places."""

        def __call__(self, scores, ids, index):
            wrong = ops.mod(ops.arange(scores.shape[-1]) + index, 2) == 1
            return ops.where(wrong, NEVER, scores)

    ids, _ = n_best(
        beams(constraints=[Alternating(), BannedTokens([END])]),
        trees(5, LENGTH),
    )
    assert (ids % 2 == np.arange(LENGTH) % 2).all()


def test_constraints_forbid_in_each_row_what_it_has_written():
    ids = ops.convert_to_tensor([[2, 1, 2, 0], [1, 1, 0, 0]])
    scores = NoRepeatNgram(2)(ops.zeros((2, 3)), ids, 3)
    # In the second row 0 was written last, and nothing has followed it.
    expected = [[True, False, True], [True, True, True]]
    assert (array(scores) > NEVER / 2).tolist() == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BannedTokens([3, -2]), "0 or greater. Received: -2"),
        (
            lambda: BannedTokens([7])(ops.zeros((1, 5)), None, 0),
            "less than 5, the size of the vocabulary. Received: 7",
        ),
        (lambda: NoRepeatNgram(0), "`size` must be a whole number"),
        (
            lambda: GreedyGenerator(3, min_length=5),
            "`min_length` must be at most `max_length`. Received: "
            "min_length=5, max_length=3",
        ),
        (
            lambda: GreedyGenerator(3, min_length=0),
            "`min_length` must be a whole number",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

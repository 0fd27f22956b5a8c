"""What a generator of one sequence gets from its choice of a token."""

import numpy as np
import pytest
from generation.toy_steps import END
from generation.toy_steps import PAD
from generation.toy_steps import V
from generation.toy_steps import log_probabilities
from generation.toy_steps import n_best
from generation.toy_steps import total
from generation.toy_steps import trees
from generation.toy_steps import unpadded
from keras import ops

from keras_tfm.generation import TokenChooser

LENGTH = 4


class Unlikeliest(TokenChooser):
    def next_token(self, next_tokens, index, seeds):
        scores = next_tokens.scores()
        # What is forbidden would be the least likely of all.
        scores = ops.where(scores < -1e20, np.inf, scores)
        return ops.argmin(scores, axis=-1)


class Told(TokenChooser):
    """Choose 3 and 4 by turns, and begin with what the seed says."""

    def next_token(self, next_tokens, index, seeds):
        return ops.expand_dims(3 + ops.mod(seeds + index, 2), 1)


def test_a_chooser_must_say_how():
    with pytest.raises(TypeError, match=r"abstract method '?next_token"):
        TokenChooser(3)


def test_a_subclass_fills_in_the_choice_alone():
    logits = trees(17, LENGTH)
    ids, scores = n_best(Unlikeliest(LENGTH), logits)
    assert ids.shape == (17, 1, LENGTH)
    for row, tree in enumerate(log_probabilities(logits)):
        written, node = [], 0
        while len(written) < LENGTH and END not in written:
            token = 1 + int(tree[node][PAD + 1 :].argmin())
            written.append(token)
            node = node * V + token + 1
        assert unpadded(ids[row, 0]) == tuple(written)
        np.testing.assert_allclose(
            scores[row, 0], total(tree, written), atol=1e-5
        )


def test_a_choice_knows_the_seeds_and_the_place():
    logits = trees(3, LENGTH)
    ids, _ = n_best(Told(LENGTH), logits, seeds=[5, 7, 0])
    expected = [[4, 3, 4, 3], [4, 3, 4, 3], [3, 4, 3, 4]]
    assert ids[:, 0].tolist() == expected


def test_each_row_has_its_own_greatest_length():
    logits = trees(5, LENGTH)
    limits = [1, 3, 0, 99, 2]
    ids, scores = n_best(Told(LENGTH), logits, max_lengths=limits)
    assert (ids != PAD).sum(-1).ravel().tolist() == [1, 3, 1, LENGTH, 2]
    for row, tree in enumerate(log_probabilities(logits)):
        expected = total(tree, unpadded(ids[row, 0]))
        np.testing.assert_allclose(scores[row, 0], expected, atol=1e-5)

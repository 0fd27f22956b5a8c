"""A hypothesis, and a place that none has filled."""

from keras_tfm.ops.search import NEVER
from keras_tfm.tasks.hypothesis import Hypothesis
from keras_tfm.tasks.hypothesis import is_hypothesis


def test_equal_ones_are_equal():
    assert Hypothesis("a", -1.0) == Hypothesis("a", -1.0)


def test_a_score_of_never_is_an_empty_place():
    assert is_hypothesis(-800.0)
    assert not is_hypothesis(NEVER)
    assert not is_hypothesis(NEVER / 1.7)

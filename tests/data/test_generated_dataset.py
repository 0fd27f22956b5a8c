"""Datasets of what a Python iterator yields, without `from_generator`."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.data.generated_dataset import generated_dataset

SPEC = (
    {"ids": tf.TensorSpec((None,), tf.int32)},
    tf.TensorSpec((2,), tf.float32),
)


def elements(number=None):
    counts = itertools.count() if number is None else range(number)
    for count in counts:
        ids = np.arange(count % 5, dtype="int32")
        yield {"ids": ids}, np.full(2, count, "float32")


def numbers(dataset, number=None):
    return [int(y[0]) for _, y in itertools.islice(dataset, number)]


def test_gives_the_elements_in_their_structure():
    dataset = generated_dataset(lambda: elements(7), SPEC, 7)
    assert dataset.element_spec == SPEC
    for (x, y), (mine, theirs) in zip(dataset, elements(7), strict=True):
        np.testing.assert_array_equal(x["ids"], mine["ids"])
        np.testing.assert_array_equal(y, theirs)


@pytest.mark.parametrize("size", [0, 3])
def test_knows_its_size(size):
    dataset = generated_dataset(lambda: elements(size), SPEC, size)
    assert int(dataset.cardinality()) == size
    assert numbers(dataset) == list(range(size))


def test_goes_on_without_end():
    dataset = generated_dataset(elements, SPEC, None)
    assert int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert numbers(dataset, 11) == list(range(11))


def test_can_be_iterated_again_and_twice_at_a_time():
    dataset = generated_dataset(elements, SPEC, None)
    assert numbers(dataset, 5) == numbers(dataset, 5)
    first, second = iter(dataset), iter(dataset)
    found = [int(next(i)[1][0]) for i in (first, first, second, first, second)]
    assert found == [0, 1, 0, 2, 1]


def test_an_iterator_that_ends_too_early_is_an_error():
    dataset = generated_dataset(lambda: elements(2), SPEC, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="StopIteration"):
        list(dataset)

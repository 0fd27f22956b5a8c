"""Each combination of shapes is told of once, and no batch is changed."""

import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.data.shape_watch import named_tensors
from keras_tfm.data.shape_watch import watch_shapes


def watched(dataset):
    """Return the batches of a watched dataset, and what was told."""
    seen = []
    dataset = watch_shapes(dataset, lambda *shapes: seen.append(shapes))
    return list(dataset.as_numpy_iterator()), seen


def batches():
    rows = {"a": np.arange(14).reshape(7, 2), "b": np.arange(7.0)}
    labels = np.arange(7, dtype="int32")
    return tf.data.Dataset.from_tensor_slices((rows, labels))


def test_the_last_batch_is_told_of():
    dataset = batches().batch(3)
    found, seen = watched(dataset)
    assert [shapes for shapes, _ in seen] == [
        {"a": (3, 2), "b": (3,), "labels": (3,)},
        {"a": (1, 2), "b": (1,), "labels": (1,)},
    ]
    dtypes = {"a": "int64", "b": "float64", "labels": "int32"}
    assert {tuple(d.items()) for _, d in seen} == {tuple(dtypes.items())}
    for one, other in zip(found, dataset.as_numpy_iterator(), strict=True):
        np.testing.assert_array_equal(one[0]["a"], other[0]["a"])
        np.testing.assert_array_equal(one[1], other[1])


def test_a_dataset_of_one_static_shape_is_returned_as_it_is():
    dataset = batches().batch(3, drop_remainder=True)
    seen = []
    assert watch_shapes(dataset, lambda *args: seen.append(args)) is dataset
    assert [shapes for shapes, _ in seen] == [
        {"a": (3, 2), "b": (3,), "labels": (3,)}
    ]


def test_a_second_epoch_tells_nothing_new():
    _, seen = watched(batches().batch(3).repeat(3))
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("structure", "names"),
    [
        (1, ["inputs"]),
        ((1, 2), ["inputs", "labels"]),
        (({"ids": 1, "a": 2}, 3, 4), ["a", "ids", "labels", "weights"]),
        (((1, 2), 3), ["inputs", "inputs_2", "labels"]),
        (({"ids": 1, "labels": 2}, 3), ["ids", "labels", "labels_2"]),
    ],
)
def test_tensors_are_named_by_their_keys_or_their_places(structure, names):
    tensors = tf.nest.map_structure(tf.constant, structure)
    assert list(named_tensors(tensors)) == names


def test_a_name_that_comes_twice_is_watched_twice():
    dataset = batches().batch(3).map(lambda x, y: ({**x, "labels": y}, y))
    _, seen = watched(dataset)
    assert [shapes["labels_2"] for shapes, _ in seen] == [(3,), (1,)]


def test_ragged_rows_have_no_shape_to_tell_and_pass():
    rows = tf.ragged.constant([[1, 2], [3], [4]])
    dataset = tf.data.Dataset.from_tensor_slices((rows, [1, 2, 3])).batch(2)
    seen = []
    watch = watch_shapes(dataset, lambda shapes, _: seen.append(shapes))
    assert [ids.to_list() for ids, _ in watch] == [[[1, 2], [3]], [[4]]]
    assert seen == [{"labels": (2,)}, {"labels": (1,)}]

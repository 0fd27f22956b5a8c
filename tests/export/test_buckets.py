"""Chunks and shapes: any number of rows, a few programs."""

import pytest
import tensorflow as tf

from keras_tfm.export.buckets import Buckets
from keras_tfm.export.buckets import next_size

BUCKETS = Buckets(lengths=(3, 7), batch_sizes=(1, 2, 5), pad_id=9)


def test_there_are_as_many_shapes_as_sizes_and_lengths():
    assert list(BUCKETS.shapes()) == [
        (1, 3),
        (1, 7),
        (2, 3),
        (2, 7),
        (5, 3),
        (5, 7),
    ]


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 1), (1, 1), (2, 2), (3, 5), (6, 5)]
)
def test_the_next_size_is_the_first_that_fits(size, expected):
    assert int(next_size(tf.constant(size), (1, 2, 5))) == expected


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 6, 13])
def test_the_results_are_those_of_the_rows_in_their_order(count):
    rows = [list(range(1, 1 + place % 7)) for place in range(count)]
    others = [[2] * (place % 3) for place in range(count)]
    shapes = set()

    def total(ids, more):
        tf.py_function(lambda x: shapes.add(tuple(x.shape)), [ids], Tout=[])
        real = tf.where(ids == 9, 0, ids)
        more = tf.where(more == 9, 0, more)
        return tf.reduce_sum(real, 1), tf.reduce_sum(more, 1, keepdims=True)

    @tf.function(autograph=False)
    def run(column, second):
        return BUCKETS.run(
            total,
            [column, second],
            [tf.TensorShape((None,)), tf.TensorShape((None, 1))],
            [tf.int32, tf.int32],
        )

    first, second = run(
        tf.ragged.constant(rows, tf.int32, ragged_rank=1),
        tf.ragged.constant(others, tf.int32, ragged_rank=1),
    )
    assert first.numpy().tolist() == [sum(row) for row in rows]
    assert second.numpy().tolist() == [[sum(row)] for row in others]
    assert shapes <= set(BUCKETS.shapes())
    assert bool(shapes) == bool(count)


def test_rows_of_like_length_go_together():
    seen = []

    def watch(ids):
        tf.py_function(lambda x: seen.append(tuple(x.shape)), [ids], Tout=[])
        return (ids[:, :1],)

    rows = [[1] * length for length in (7, 2, 1, 6, 3, 7, 2, 3, 5, 1)]
    column = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    # Eagerly, so that the chunks are seen in their order.
    BUCKETS.run(watch, [column], [tf.TensorShape((None, 1))], [tf.int32])
    assert seen == [(5, 3), (5, 7)]

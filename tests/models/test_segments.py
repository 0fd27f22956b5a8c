"""The layers that read segments, and the shapes they promise."""

import keras
import numpy as np

from keras_tfm.models.segments import SegmentMask
from keras_tfm.models.segments import SegmentPositions

QUERIES = np.array([[1, 1, 2, 0, 0], [1, 2, 3, 3, 3]])
KEYS = np.array([[1, 2, 2], [3, 1, 0]])


def test_a_token_sees_its_own_segment_and_no_padding():
    found = keras.ops.convert_to_numpy(SegmentMask()(QUERIES, KEYS))
    expected = [
        [[q == k != 0 for k in keys] for q in queries]
        for queries, keys in zip(QUERIES, KEYS, strict=True)
    ]
    np.testing.assert_array_equal(found, expected)


def test_positions_start_anew_in_each_segment():
    found = keras.ops.convert_to_numpy(SegmentPositions()(QUERIES))
    np.testing.assert_array_equal(found, [[0, 1, 0, 0, 1], [0, 0, 0, 1, 2]])


def test_they_say_their_shapes_and_dtypes():
    queries = keras.Input((None,), dtype="int32")
    keys = keras.Input((7,), dtype="int32")
    mask = SegmentMask()(queries, keys)
    assert (mask.shape, mask.dtype) == ((None, None, 7), "bool")
    positions = SegmentPositions()(keys)
    assert (positions.shape, positions.dtype) == ((None, 7), "int32")

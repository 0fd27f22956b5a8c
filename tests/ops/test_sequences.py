"""Shifts, lengths and packed rows against plain loops."""

import keras
import numpy as np
from backend_functions import compiled
from hypothesis import given
from hypothesis import strategies as st

from keras_tfm.ops.sequences import segment_positions
from keras_tfm.ops.sequences import sequence_lengths
from keras_tfm.ops.sequences import shift_right


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


@given(
    st.lists(
        st.lists(st.integers(0, 99), min_size=5, max_size=5),
        min_size=1,
        max_size=3,
    )
)
def test_the_decoder_reads_the_start_and_all_but_the_last(rows):
    found = array(shift_right(rows, start_id=7))
    assert found.tolist() == [[7, *row[:-1]] for row in rows]


def test_a_shift_keeps_the_dtype_of_the_ids():
    for dtype in ("int32", "uint8"):
        ids = keras.ops.convert_to_tensor([[5, 6]], dtype)
        found = shift_right(ids, 1)
        assert keras.backend.standardize_dtype(found.dtype) == dtype


def test_what_goes_in_is_one_behind_what_comes_out():
    labels = np.array([[5, 6, 2, 0, 0], [4, 2, 0, 0, 0]])
    fed = array(shift_right(labels, start_id=1))
    assert (fed[:, 0] == 1).all()
    np.testing.assert_array_equal(fed[:, 1:], labels[:, :-1])


def test_a_length_counts_the_real_tokens():
    mask = np.array([[True, True, False], [False] * 3, [True] * 3])
    found = sequence_lengths(mask)
    assert array(found).tolist() == [2, 0, 3]
    assert keras.backend.standardize_dtype(found.dtype) == "int32"


def rows_of_segments():
    """Packed rows of eleven places: runs of 1, 2, ... and then padding."""
    lengths = st.lists(st.integers(1, 4), max_size=5)

    def pack(lengths):
        row = [n + 1 for n, length in enumerate(lengths) for _ in range(length)]
        return (row + [0] * 11)[:11]

    return lengths.map(pack)


@given(st.lists(rows_of_segments(), min_size=2, max_size=2))
def test_each_segment_of_a_packed_row_counts_from_zero(rows):
    found = array(segment_positions(rows))
    for row, positions in zip(rows, found, strict=True):
        expected = []
        for place, segment in enumerate(row):
            new = place == 0 or row[place - 1] != segment
            expected.append(0 if new else expected[-1] + 1)
        assert positions.tolist() == expected


def test_a_row_of_padding_is_numbered_too():
    assert array(segment_positions([[0, 0, 0]])).tolist() == [[0, 1, 2]]


def test_packed_rows_are_numbered_in_a_compiled_program():
    rows = keras.ops.convert_to_tensor([[1, 1, 2, 0], [1, 2, 2, 2]])
    found = compiled(segment_positions)(rows)
    assert array(found).tolist() == [[0, 1, 0, 0], [0, 0, 1, 2]]

"""TokenRows: rows of their own lengths come back padded and packed."""

import numpy as np
import pytest

from keras_tfm.data.token_rows import TokenRows

IDS = [[5, 6, 7], [], [8], [9, 10, 11, 12, 13], [14, 15]]
END, PAD = 2, 3


def made(ids=IDS):
    return TokenRows([np.array(row, "int64") for row in ids], END)


def picked(rows):
    """Read every row with the attributes that are said to find it."""
    return [
        rows.flat[start : start + length].tolist()
        for start, length in zip(rows.starts, rows.lengths, strict=True)
    ]


def test_every_row_is_found_with_its_end():
    rows = made()
    assert picked(rows) == [[*row, END] for row in IDS]
    assert rows.flat.dtype == np.int32
    assert len(rows.flat) == rows.lengths.sum()


@pytest.mark.parametrize("chosen", [[3, 0, 1], [1], [2, 2, 4, 0]])
def test_padded_rows_are_those_of_a_loop(chosen):
    padded = made().padded(np.array(chosen), 5, 7, PAD)
    assert padded.dtype == np.int32
    expected = [[*IDS[index], END] for index in chosen]
    expected += [[]] * (5 - len(chosen))
    assert padded.tolist() == [row + [PAD] * (7 - len(row)) for row in expected]


def test_packed_rows_are_those_of_a_loop():
    chosen = [[3, 2], [1], [4, 0, 1]]
    ids, segments = made().packed([np.array(c) for c in chosen], 5, 11, PAD)
    assert ids.dtype == segments.dtype == np.int32
    for row, entries in enumerate([*chosen, [], []]):
        expected_ids, expected_segments = [], []
        for number, entry in enumerate(entries, start=1):
            for token in [*IDS[entry], END]:
                expected_ids.append(token)
                expected_segments.append(number)
        empty = 11 - len(expected_ids)
        assert ids[row].tolist() == expected_ids + [PAD] * empty
        assert segments[row].tolist() == expected_segments + [0] * empty


def test_a_row_may_be_full_to_the_last_place():
    ids, segments = made().packed([np.array([0, 2])], 1, 6, PAD)
    assert ids.tolist() == [[5, 6, 7, END, 8, END]]
    assert segments.tolist() == [[1, 1, 1, 1, 2, 2]]


def test_only_chosen_rows_are_replaced():
    rows = made()
    other = made([[21], [22, 23], [24, 25, 26], [], [27]])
    changed = rows.replaced(np.array([False, True, True, False, True]), other)
    assert picked(changed) == [
        [5, 6, 7, END],
        [22, 23, END],
        [24, 25, 26, END],
        [9, 10, 11, 12, 13, END],
        [27, END],
    ]
    # The rows it was made of stay as they were.
    assert picked(rows) == [[*row, END] for row in IDS]
    padded = changed.padded(np.array([2, 0]), 2, 5, PAD)
    assert padded.tolist() == [[24, 25, 26, END, PAD], [5, 6, 7, END, PAD]]

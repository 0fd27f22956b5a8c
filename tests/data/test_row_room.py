"""How much room the two sides of a row have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_tfm.data.row_room import as_room
from keras_tfm.data.row_room import row_room

LENGTHS = st.lists(
    st.tuples(st.integers(1, 97), st.integers(1, 97)), min_size=1, max_size=29
)


@pytest.mark.parametrize(
    ("pairs", "tokens_per_batch", "room"),
    [
        # Four of 10 tokens, to the next multiple of 16; 48 * 6 / 10 = 28.8.
        ([(10, 6)] * 11, 4096, (48, 29)),
        ([(6, 10)] * 11, 4096, (29, 48)),
        # Four of 16 need nothing to be rounded up.
        ([(16, 6)] * 11, 4096, (64, 24)),
        # The longest one has room: 91 of 1061 tokens, and 96 * 586 / 1061.
        ([(10, 6)] * 97 + [(91, 4)], 4096, (96, 54)),
        # So it has on the shorter side: 40 of 535 are as many of its tokens
        # as 74.8 of the 1000, and 80 * 535 / 1000 = 42.8.
        ([(10, 5)] * 99 + [(10, 40)], 4096, (80, 43)),
        # No row is longer than a batch.
        ([(10, 6)] * 11, 40, (40, 29)),
    ],
)
def test_a_row_has_room_for_four_usual_pairs_and_for_the_longest(
    pairs, tokens_per_batch, room
):
    lengths = np.array(pairs).T
    assert row_room(lengths, tokens_per_batch, tokens_per_batch) == room


@given(LENGTHS, st.integers(1, 97))
def test_each_pair_that_is_counted_fits(pairs, longest):
    lengths = np.array(pairs).T
    room = row_room(lengths, longest, 4096)
    counted = lengths[:, lengths.max(axis=0) <= longest]
    assert (counted <= np.array(room)[:, None]).all()
    # The longer side is a multiple of 16 unless nothing was counted.
    assert not counted.size or max(room) % 16 == 0
    swapped = row_room(lengths[::-1], longest, 4096)
    assert swapped == room[::-1]


@pytest.mark.parametrize("number", range(7, 53))
def test_a_longest_pair_of_a_multiple_asks_for_no_more(number):
    lengths = np.array([[64, *[7] * (number - 1)]] * 2)
    assert row_room(lengths, 64, 4096) == (64, 64)


def test_a_room_that_was_asked_for_is_a_pair():
    assert as_room(48, 4096) == (48, 48)
    assert as_room((48, 29), 48) == (48, 29)

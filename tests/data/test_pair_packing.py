"""pack_pairs: every pair once, in rows that fit and are nearly full."""

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.data.pair_packing import pack_pairs

ROOM = (23, 19)
PAIRS = st.lists(
    st.tuples(st.integers(1, ROOM[0]), st.integers(1, ROOM[1])), max_size=70
)


def packed(lengths, room=ROOM):
    """Pack pairs of lengths; return lists of lists of indices."""
    sides = np.array(lengths, int).reshape(-1, 2).T
    return [row.tolist() for row in pack_pairs(*sides, room)]


def filled(lengths, row):
    """Add up both sides of a row, pair by pair."""
    source = target = 0
    for index in row:
        source += lengths[index][0]
        target += lengths[index][1]
    return source, target


def fewest_rows(lengths, room):
    """Try every way to put the pairs into rows."""
    best = len(lengths)

    def place(index, rows):
        nonlocal best
        if len(rows) >= best:
            return
        if index == len(lengths):
            best = len(rows)
            return
        source, target = lengths[index]
        for number, (used_source, used_target) in enumerate(rows):
            more = (used_source + source, used_target + target)
            if more[0] <= room[0] and more[1] <= room[1]:
                changed = [*rows]
                changed[number] = more
                place(index + 1, changed)
        place(index + 1, [*rows, (source, target)])

    place(0, [])
    return best


def like_sentences(number, seed=0):
    """Draw lengths of pairs: 15 on average, both sides grow together."""
    normal = np.random.default_rng(seed).normal(size=(number, 3))
    both = normal[:, :1] * 4.5 + normal[:, 1:] * 2.2
    return np.clip(np.round(15 + both), 2, 40).astype(int)


@settings(max_examples=60)
@given(PAIRS)
def test_every_pair_is_in_one_row_and_every_row_fits(lengths):
    rows = packed(lengths)
    assert sorted(itertools.chain(*rows)) == list(range(len(lengths)))
    for row in rows:
        source, target = filled(lengths, row)
        assert 0 < source <= ROOM[0]
        assert 0 < target <= ROOM[1]


@settings(max_examples=60)
@given(PAIRS)
def test_a_row_is_closed_only_when_nothing_left_fits(lengths):
    rows = packed(lengths)
    for number, row in enumerate(rows):
        source, target = filled(lengths, row)
        for later in itertools.chain(*rows[number + 1 :]):
            fits = (
                source + lengths[later][0] <= ROOM[0]
                and target + lengths[later][1] <= ROOM[1]
            )
            assert not fits


@settings(max_examples=60)
@given(PAIRS, st.randoms(use_true_random=False))
def test_lengths_decide_and_equal_ones_are_taken_in_order(lengths, random):
    rows = packed(lengths)
    assert packed(lengths) == rows
    taken = collections.defaultdict(list)
    for index in itertools.chain(*rows):
        taken[tuple(lengths[index])].append(index)
    assert all(found == sorted(found) for found in taken.values())
    # In another order the rows have the same lengths at the same places.
    order = list(range(len(lengths)))
    random.shuffle(order)
    shuffled = [lengths[index] for index in order]
    assert [[shuffled[i] for i in row] for row in packed(shuffled)] == [
        [lengths[i] for i in row] for row in rows
    ]


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.integers(1, 11), st.integers(1, 7)),
        min_size=1,
        max_size=6,
    )
)
def test_there_is_at_most_one_row_more_than_the_fewest(lengths):
    fewest = fewest_rows(lengths, (11, 7))
    assert fewest <= len(packed(lengths, (11, 7))) <= fewest + 1


def test_sentences_leave_less_than_a_twentieth_empty():
    lengths = like_sentences(4001)
    assert abs(lengths.mean() - 15) < 0.5
    assert abs(lengths.std() - 5) < 0.5
    assert np.corrcoef(lengths.T)[0, 1] > 0.7
    rows = packed(lengths, (64, 64))
    share = 1 - lengths.sum() / (len(rows) * 128)
    assert 0 < share < 0.05
    assert len(rows) < len(lengths) / 3.5


def test_the_rows_are_those_worked_out_by_hand():
    # The longest pair, 3, leaves (4, 2). There 0 fits best, and leaves (1, 1).
    lengths = [(3, 1), (2, 2), (1, 1), (6, 5), (2, 2)]
    assert packed(lengths, (10, 7)) == [[3, 0, 2], [1, 4]]


def test_no_pairs_need_no_rows():
    assert packed([]) == []


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((24, 3), "Pair 2 has 24 and 3 tokens, .* room for 23 and 19"),
        ((3, 20), "Pair 2 has 3 and 20 tokens, .* room for 23 and 19"),
        ((24, 20), "Leave the pair out, or make the rows longer"),
    ],
)
def test_a_pair_longer_than_a_row_is_named(pair, message):
    with pytest.raises(ValueError, match=message):
        packed([(23, 19), pair, (99, 99)])

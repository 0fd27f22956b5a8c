"""At first half of the pairs are turned around, the other half next."""

import itertools

import numpy as np
import pytest

from keras_tfm.data.both_directions import BothDirections
from keras_tfm.data.packed_batches import PackedBatches

# Sources have odd ids, targets even ones; 23 pairs of several lengths.
SOURCES = [np.full(1 + n % 5, 2 * n + 3, np.int32) for n in range(23)]
TARGETS = [np.full(1 + n % 3, 2 * n + 4, np.int32) for n in range(23)]


def as_pairs(rows):
    return [(x.tolist(), y.tolist()) for x, y in zip(*rows, strict=True)]


PAIRS = as_pairs((SOURCES, TARGETS))


def turned(rows):
    """Tell for each pair whether it was turned; it must be the pair."""
    found = as_pairs(rows)
    assert len(found) == len(PAIRS)
    turns = []
    for pair, usual in zip(found, PAIRS, strict=True):
        assert pair in (usual, usual[::-1])
        turns.append(pair != usual)
    return np.array(turns)


def test_two_epochs_hold_each_pair_once_in_each_direction():
    both = BothDirections(SOURCES, TARGETS, epochs=6)
    for epoch in (0, 2, 4):
        first, second = turned(both(epoch)), turned(both(epoch + 1))
        np.testing.assert_array_equal(first, ~second)
        assert abs(int(first.sum()) - int(second.sum())) == 1


@pytest.mark.parametrize("epochs", [1, 4])
def test_later_epochs_turn_nothing(epochs):
    both = BothDirections(SOURCES, TARGETS, epochs)
    assert turned(both(epochs - 1)).any()
    for epoch in (epochs, epochs + 1, epochs + 70):
        assert not turned(both(epoch)).any()


def test_other_pairs_are_turned_with_another_seed_or_in_later_epochs():
    both = BothDirections(SOURCES, TARGETS, epochs=4)
    again = BothDirections(SOURCES, TARGETS, epochs=4)
    other = BothDirections(SOURCES, TARGETS, epochs=4, seed=1)
    # Whatever was asked for before.
    again(3)
    np.testing.assert_array_equal(turned(both(0)), turned(again(0)))
    assert (turned(both(0)) != turned(both(2))).any()
    assert (turned(both(0)) != turned(other(0))).any()


def test_turns_what_another_resample_made():
    def longer(epoch):
        return tuple(
            [np.append(row, row[:1] * (epoch + 1)) for row in side]
            for side in (SOURCES, TARGETS)
        )

    both = BothDirections(SOURCES, TARGETS, epochs=2, resample=longer)
    plain = BothDirections(SOURCES, TARGETS, epochs=2)
    for epoch in range(4):
        for (x, y), (usual_x, usual_y) in zip(
            as_pairs(both(epoch)), as_pairs(plain(epoch)), strict=True
        ):
            assert x == [*usual_x, usual_x[0] * (epoch + 1)]
            assert y == [*usual_y, usual_y[0] * (epoch + 1)]


def test_packed_batches_read_the_turned_pairs():
    def batches():
        return PackedBatches(
            SOURCES,
            TARGETS,
            tokens_per_batch=40,
            row_length=20,
            resample=BothDirections(SOURCES, TARGETS, epochs=1, seed=5),
            start_id=1,
            end_id=2,
        )

    made = batches()
    found = list(itertools.islice(made.dataset(), 2 * made.steps_per_epoch))
    begin = next(s for s in range(40) if made.state(s)["epoch"] == 1)
    rows = turned(BothDirections(SOURCES, TARGETS, epochs=1, seed=5)(0))
    odd = {
        int(i)
        for x, _ in found[:begin]
        for i in np.unique(x["source_ids"])
        if i > 2
    }
    assert odd == {2 * n + (4 if turn else 3) for n, turn in enumerate(rows)}
    later = np.concatenate([x["source_ids"].numpy() for x, _ in found[begin:]])
    assert (later[later > 2] % 2 == 1).all()


@pytest.mark.parametrize("epochs", [0, -1, 1.5, True, None])
def test_refuses_epochs_that_are_no_number_of_them(epochs):
    with pytest.raises((TypeError, ValueError), match="epochs"):
        BothDirections(SOURCES, TARGETS, epochs)


def test_refuses_sides_that_do_not_match():
    with pytest.raises(ValueError, match="shorter"):
        BothDirections(SOURCES, TARGETS[:-1], 1)(0)

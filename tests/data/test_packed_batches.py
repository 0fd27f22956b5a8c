"""PackedBatches: nothing lost, one shape, an order that can be resumed."""

import collections
import itertools
import json
import time

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import Phase
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.data.packed_batches import PackedBatches
from keras_tfm.data.text_files import DataError

PAIRS = st.lists(
    st.tuples(st.integers(0, 23), st.integers(0, 23)), min_size=1, max_size=60
)
START, END, PAD = 1, 2, 0


def made(lengths):
    """Make pairs that can be told apart: pair n holds the ids 10 n + 10..."""
    sources = [
        10 * n + 10 + np.arange(s) % 7 for n, (s, _) in enumerate(lengths)
    ]
    targets = [
        10 * n + 10 + np.arange(t) % 5 for n, (_, t) in enumerate(lengths)
    ]
    return sources, targets


def some_lengths(number, seed=0, longest=23):
    return (
        np.random.default_rng(seed).integers(1, longest, (number, 2)).tolist()
    )


def resampled(epoch):
    """Return 53 pairs of other lengths for each epoch."""
    return made(some_lengths(53, seed=epoch + 100, longest=9 + epoch % 3 * 7))


def small(resample=None, seed=3):
    """Make 53 pairs into a few batches."""
    pairs = made(some_lengths(53))
    return PackedBatches(
        *pairs, 120, row_length=24, resample=resample, seed=seed
    )


def arrays(dataset, number=None):
    return [
        ({k: v.numpy() for k, v in x.items()}, y.numpy())
        for x, y in itertools.islice(dataset, number)
    ]


def assert_equal_batches(found, expected):
    for (x, y), (other_x, other_y) in zip(found, expected, strict=True):
        assert x.keys() == other_x.keys()
        for name, array in x.items():
            np.testing.assert_array_equal(array, other_x[name])
        np.testing.assert_array_equal(y, other_y)


def entries(segments, *rows, pad=PAD):
    """Split rows by their segments with a plain loop."""
    found = []
    for place, segment in enumerate(segments):
        if segment == 0:
            assert not segments[place:].any()
            assert all((row[place:] == pad).all() for row in rows)
            break
        if segment == len(found) + 1:
            found.append([[] for _ in rows])
        assert segment == len(found)
        for entry, row in zip(found[-1], rows, strict=True):
            entry.append(int(row[place]))
    return found


def rows_in(batches):
    """Undo the batches with plain loops: a list of pairs for each row."""
    found = []
    for x, y in batches:
        for row, labels in enumerate(y):
            sources = entries(x["source_segments"][row], x["source_ids"][row])
            targets = entries(
                x["target_segments"][row], x["target_ids"][row], labels
            )
            pairs = []
            for (source,), (fed, label) in zip(sources, targets, strict=True):
                assert source.pop() == END
                assert label.pop() == END
                assert fed == [START, *label]
                pairs.append((source, label))
            found.append(pairs)
    return found


def expected_pairs(sources, targets):
    both = zip(sources, targets, strict=True)
    return [(s.tolist(), t.tolist()) for s, t in both]


def assert_holds(rows, pairs):
    """Check that the rows hold each of the pairs once.

    Counted, for pytest would take a minute to show how long lists differ.
    """
    found = collections.Counter(map(str, itertools.chain(*rows)))
    expected = collections.Counter(map(str, pairs))
    assert not expected - found
    assert not found - expected


# Not shrunk: a dataset for each example, and a failure would take minutes.
@settings(max_examples=15, phases=(Phase.explicit, Phase.generate))
@given(
    PAIRS,
    st.integers(24, 150),
    st.sampled_from([None, 24, (24, 24)]),
    st.integers(0, 3),
    st.booleans(),
)
def test_an_epoch_holds_every_pair_once_in_one_shape(
    lengths, tokens_per_batch, row_length, seed, shuffle
):
    sources, targets = made(lengths)
    batches = PackedBatches(
        sources, targets, tokens_per_batch, row_length=row_length, seed=seed
    )
    found = arrays(batches.dataset(shuffle=shuffle, repeat=False))
    assert len(found) == batches.steps_per_epoch
    ((rows, source_length, target_length),) = batches.shapes
    assert rows * max(source_length, target_length) <= tokens_per_batch
    real = size = 0
    for x, y in found:
        assert {array.dtype for array in (*x.values(), y)} == {np.dtype("i4")}
        for side in ("source", "target"):
            length = source_length if side == "source" else target_length
            assert x[f"{side}_ids"].shape == (rows, length)
            assert x[f"{side}_segments"].shape == (rows, length)
            size += rows * length
        assert y.shape == (rows, target_length)
        real += np.count_nonzero(x["source_ids"]) + np.count_nonzero(y)
    assert_holds(rows_in(found), expected_pairs(sources, targets))
    assert (batches.num_pairs, batches.num_dropped) == (len(lengths), 0)
    assert batches.padding_share == pytest.approx(1 - real / size)
    assert batches.tokens_per_step == pytest.approx(real / len(found))


def test_the_rows_are_those_worked_out_by_hand():
    sources = [np.array([5, 6, 7]), np.array([8])]
    targets = [np.array([9]), np.array([], np.int32)]
    batches = PackedBatches(
        sources,
        targets,
        14,
        row_length=(7, 4),
        start_id=21,
        end_id=22,
        pad_id=3,
    )
    assert batches.shapes == [(1, 7, 4)]
    ((x, y),) = arrays(batches.dataset(shuffle=False))
    assert x["source_ids"].tolist() == [[5, 6, 7, 22, 8, 22, 3]]
    assert x["source_segments"].tolist() == [[1, 1, 1, 1, 2, 2, 0]]
    assert x["target_ids"].tolist() == [[21, 9, 21, 3]]
    assert x["target_segments"].tolist() == [[1, 1, 2, 0]]
    assert y.tolist() == [[9, 22, 22, 3]]
    assert batches.padding_share == pytest.approx(2 / 11)
    assert batches.tokens_per_step == 9


@pytest.mark.parametrize("resample", [None, resampled])
@pytest.mark.parametrize("step", [0, 1, 5, 11, 26])
def test_a_later_start_goes_on_as_the_uninterrupted_run(step, resample):
    batches = small(resample)
    whole = arrays(batches.dataset(), step + 17)
    # By now the dataset has gone on into later epochs.
    state = json.loads(json.dumps(batches.state(step)))
    assert batches.state(step + 17)["epoch"] > state["epoch"]
    late = arrays(small(resample).dataset(step, state), 17)
    assert_equal_batches(late, whole[step:])
    if resample is None:
        late = arrays(small().dataset(step), 17)
        assert_equal_batches(late, whole[step:])


@pytest.mark.parametrize("resample", [None, resampled])
def test_a_resumed_training_can_be_resumed_again(resample):
    first = small(resample)
    whole = arrays(first.dataset(), 41)
    second = small(resample)
    arrays(second.dataset(13, first.state(13)), 23)
    third = small(resample)
    late = arrays(third.dataset(29, second.state(29)), 12)
    assert_equal_batches(late, whole[29:])
    assert second.state(29) == first.state(29)
    # An older state will do: batches are left out from there on.
    older = arrays(small(resample).dataset(29, first.state(2)), 12)
    assert_equal_batches(older, whole[29:])


def test_the_state_names_the_epoch_that_a_step_lies_in():
    batches = small(resampled)
    # Epochs of other subwords are not all as long.
    steps = [
        len(arrays(small(lambda _, e=e: resampled(e)).dataset(repeat=False)))
        for e in range(3)
    ]
    assert len(set(steps)) == 3
    arrays(batches.dataset(), sum(steps) + 5)
    begins = [0, steps[0], steps[0] + steps[1], sum(steps)]
    for epoch, begin in enumerate(begins):
        expected = {"epoch": epoch, "epoch_start": begin}
        assert batches.state(begin) == expected
        assert batches.state(begin + 1) == expected
    assert batches.state(begins[3] - 1)["epoch"] == 2


def test_the_order_is_a_matter_of_seed_and_epoch_alone():
    batches = small()
    steps = batches.steps_per_epoch
    first = arrays(batches.dataset(), 2 * steps)
    # What was read before makes no difference, nor does another object.
    assert_equal_batches(arrays(batches.dataset(), 2 * steps), first)
    assert_equal_batches(arrays(small().dataset(), 2 * steps), first)
    other = rows_in(arrays(small(seed=4).dataset(), steps))
    same = other == rows_in(first[:steps])
    assert not same
    assert_holds(other, expected_pairs(*made(some_lengths(53))))


def test_every_epoch_is_whole_with_other_neighbours_in_another_order():
    # Pairs of equal lengths change their places with each other.
    sources, targets = made(some_lengths(499, longest=7))
    batches = PackedBatches(sources, targets, 240, row_length=24)
    steps = batches.steps_per_epoch
    found = arrays(batches.dataset(), 3 * steps)
    epochs = [
        rows_in(found[begin : begin + steps])
        for begin in range(0, 3 * steps, steps)
    ]
    expected = expected_pairs(sources, targets)
    rows_of_epochs = []
    for rows in epochs:
        assert_holds(rows, expected)
        rows_of_epochs.append({str(sorted(row)) for row in rows if row})
    first, second, third = rows_of_epochs
    assert len(first - second) > 0.9 * len(first)
    assert len(second - third) > 0.9 * len(first)
    beginnings = [rows[0] for rows in epochs]
    assert beginnings[0] != beginnings[1] != beginnings[2]


def test_neither_a_row_nor_an_epoch_begins_with_its_longest_pair():
    batches = PackedBatches(*made(some_lengths(499)), 240, row_length=48)
    rows = rows_in(arrays(batches.dataset(repeat=False)))
    longest = [
        np.argmax([len(source) + len(target) for source, target in row])
        for row in rows
        if len(row) > 1
    ]
    assert 0.2 < np.mean(np.array(longest) == 0) < 0.7
    # Packing ends with what is left over: full rows come first no more.
    filled = [sum(len(s) + len(t) for s, t in row) for row in rows]
    half = len(filled) // 2
    assert abs(np.mean(filled[:half]) - np.mean(filled[half:])) < 5


def test_without_shuffling_all_epochs_are_alike():
    batches = small()
    steps = batches.steps_per_epoch
    found = arrays(batches.dataset(shuffle=False, repeat=True), 2 * steps)
    assert_equal_batches(found[steps:], found[:steps])
    once = arrays(batches.dataset(shuffle=False))
    assert_equal_batches(once, found[:steps])


def test_each_epoch_has_its_own_subwords():
    batches = small(resampled)
    arrays(batches.dataset(), 40)
    found = arrays(small(resampled).dataset(), 40)
    for epoch in range(2):
        begin, end = (
            next(s for s in range(40) if batches.state(s)["epoch"] == e)
            for e in (epoch, epoch + 1)
        )
        expected = expected_pairs(*resampled(epoch))
        assert_holds(rows_in(found[begin:end]), expected)
    once = arrays(small(resampled).dataset(repeat=False))
    assert_holds(rows_in(once), expected_pairs(*resampled(0)))


@pytest.mark.parametrize(
    ("limits", "length"),
    [
        ({"row_length": 12}, 12),
        ({"row_length": 24, "max_sequence_length": 12}, 12),
        ({"row_length": (24, 12)}, 12),
    ],
)
def test_a_pair_that_has_grown_too_long_keeps_its_first_ids(limits, length):
    lengths = [(3, 4), (5, 2), (9, 9), (4, 7), (20, 30)]
    sources, targets = made(lengths)

    def resample(epoch):
        # End ids make them one longer: 1 is still short enough, 2 is not.
        # Pair 4 was too long at first, and stays out.
        grown = [(3, 4), (5, length - 1), (9, length), (3, 9), (2, 2)]
        return [[100 + ids for ids in side] for side in made(grown)]

    batches = PackedBatches(sources, targets, 48, resample=resample, **limits)
    assert (batches.num_pairs, batches.num_dropped) == (4, 1)
    new = resample(0)
    expected = expected_pairs(
        [new[0][0], new[0][1], sources[2], new[0][3]],
        [new[1][0], new[1][1], targets[2], new[1][3]],
    )
    found = arrays(batches.dataset(repeat=False))
    assert_holds(rows_in(found), expected)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"tokens_per_batch": 10}, "10"),
        ({"tokens_per_batch": 100, "max_sequence_length": 10}, "10"),
        ({"tokens_per_batch": 100, "row_length": 10}, "10"),
        ({"tokens_per_batch": 100, "row_length": (11, 10)}, "11+10"),
    ],
)
def test_too_long_pairs_are_dropped_and_counted(limits, told):
    sources, targets = made([(9, 9), (11, 1), (1, 10), (2, 3)])
    batches = PackedBatches(sources, targets, **limits)
    assert (batches.num_pairs, batches.num_dropped) == (2, 2)
    kept = expected_pairs([sources[0], sources[3]], [targets[0], targets[3]])
    found = arrays(batches.dataset(shuffle=False))
    assert_holds(rows_in(found), kept)
    assert f"(2 dropped: longer than {told} tokens)" in batches.describe()
    # 20 and 7 tokens with their end ids.
    assert batches.tokens_per_step == pytest.approx(27 / len(found))


def test_a_set_smaller_than_a_batch_is_one_batch_without_empty_rows():
    batches = PackedBatches(*made([(5, 3)] * 7), 4096, row_length=12)
    assert batches.shapes == [(4, 12, 12)]
    assert batches.steps_per_epoch == 1
    found = arrays(batches.dataset(), 3)
    assert [len(row) for row in rows_in(found[:1])].count(0) == 0
    for batch in found:
        assert_holds(rows_in([batch]), expected_pairs(*made([(5, 3)] * 7)))
    assert batches.padding_share == pytest.approx(1 - 7 * 10 / 96)


def test_a_last_batch_is_filled_up_with_rows_of_padding():
    batches = PackedBatches(*made([(3, 3)] * 7), 12, row_length=4)
    assert batches.shapes == [(3, 4, 4)]
    assert batches.steps_per_epoch == 3
    x, y = arrays(batches.dataset(shuffle=False))[-1]
    for rows in (*x.values(), y):
        assert rows.any(axis=1).tolist() == [True, False, False]


def test_both_sides_of_a_row_fill_up_together():
    # Four of 10 tokens, to the next multiple of 16; four of 6 beside it.
    batches = PackedBatches(*made([(9, 5)] * 101), 4096)
    assert batches.shapes == [(26, 48, 29)]
    assert batches.num_dropped == 0
    assert batches.padding_share < 0.2
    with_equal_sides = PackedBatches(*made([(9, 5)] * 101), 4096, row_length=48)
    assert with_equal_sides.padding_share > 0.3


def test_a_pair_that_is_dropped_needs_no_room():
    lengths = [(9, 5)] * 11 + [(500, 5)]
    batches = PackedBatches(*made(lengths), 4096, max_sequence_length=99)
    assert batches.shapes[0][1:] == (48, 29)
    assert batches.num_dropped == 1
    # What the reader is told is the limit, not the room that was chosen.
    assert "1 dropped: longer than 99 tokens" in batches.describe()


def test_the_description_is_one_line_for_people():
    batches = PackedBatches(*made([(3, 2)] * 2003), 40, row_length=(8, 7))
    assert batches.describe() == (
        "2,003 pairs, packed into 5 rows of 8+7, 201 steps an epoch, "
        "7.0% padding"
    )
    one = PackedBatches(*made([(3, 3)]), 40, row_length=4)
    assert one.describe() == (
        "1 pair, packed into 1 row of 4+4, 1 step an epoch, 0.0% padding"
    )


def test_keras_knows_how_many_batches_come():
    batches = small()
    steps = batches.steps_per_epoch
    assert int(batches.dataset(shuffle=False).cardinality()) == steps
    rest = batches.dataset(start_step=2, repeat=False)
    assert int(rest.cardinality()) == steps - 2
    assert len(arrays(rest)) == steps - 2
    endless = int(batches.dataset().cardinality())
    assert endless == tf.data.INFINITE_CARDINALITY
    endless = int(small(resampled).dataset().cardinality())
    assert endless == tf.data.INFINITE_CARDINALITY
    once = small(resampled).dataset(repeat=False)
    assert int(once.cardinality()) == len(arrays(once))


@pytest.mark.parametrize("more", [0, 2])
def test_after_the_only_epoch_nothing_is_left(more):
    batches = small()
    step = batches.steps_per_epoch + more
    assert arrays(batches.dataset(step, repeat=False)) == []
    state = batches.state(step)
    assert arrays(batches.dataset(step, state, repeat=False)) == []


def test_with_other_subwords_a_later_start_needs_its_state():
    batches = small(resampled)
    with pytest.raises(ValueError, match="give the `state` of step 5"):
        batches.dataset(5)
    arrays(batches.dataset(), 30)
    state = batches.state(26)
    message = f"starts at step {state['epoch_start']}, after step 3"
    with pytest.raises(ValueError, match=message):
        batches.dataset(3, state)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"source_ids": []}, DataError, "0 sources but 2 targets"),
        (
            {"source_ids": [], "target_ids": []},
            DataError,
            "no pairs to make batches of",
        ),
        (
            {"tokens_per_batch": 3},
            DataError,
            "All 2 pairs are too long: the shortest takes 4 .* 3 fit",
        ),
        (
            {"row_length": 3},
            DataError,
            "the shortest takes 4 tokens .* 3 fit. Raise .* or `row_length`",
        ),
        (
            {"row_length": (3, 20)},
            DataError,
            r"the shortest takes 4 tokens .* 3\+20 fit",
        ),
        (
            {"row_length": 50},
            ValueError,
            "exceed `tokens_per_batch`.*row_length=50, tokens_per_batch=40",
        ),
        ({"row_length": (4, 41)}, ValueError, r"row_length=\(4, 41\)"),
        ({"row_length": 0}, ValueError, "`row_length`.*at least 1"),
        ({"row_length": (1, 2, 3)}, ValueError, r"Received: \(1, 2, 3\)"),
        ({"tokens_per_batch": 0}, ValueError, "`tokens_per_batch`"),
        ({"max_sequence_length": 0}, ValueError, "`max_sequence_length`"),
        ({"seed": -1}, ValueError, "`seed`"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    sources, targets = made([(3, 3), (4, 5)])
    given = {
        "source_ids": sources,
        "target_ids": targets,
        "tokens_per_batch": 40,
        **arguments,
    }
    with pytest.raises(error, match=message):
        PackedBatches(**given)


def test_a_negative_start_is_refused():
    with pytest.raises(ValueError, match=r"`start_step`.*Received.*-1"):
        small().dataset(-1)


def test_thirty_thousand_pairs_are_packed_quickly():
    lengths = some_lengths(29_989, longest=29)
    start = time.perf_counter()
    batches = PackedBatches(*made(lengths), 4096, row_length=64)
    next(iter(batches.dataset()))
    assert time.perf_counter() - start < 10


def test_other_subwords_of_too_few_pairs_are_an_error():
    batches = small(lambda epoch: [side[1:] for side in resampled(epoch)])
    with pytest.raises(DataError, match="a row for each of the"):
        batches._epoch(0, True)

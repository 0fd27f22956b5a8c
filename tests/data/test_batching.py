"""BucketedBatches: nothing lost, few shapes, an order that can be resumed."""

import itertools
import json
import time

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.data.batching import BucketedBatches
from keras_tfm.data.text_files import DataError

PAIRS = st.lists(
    st.tuples(st.integers(0, 23), st.integers(0, 23)), min_size=1, max_size=60
)


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


def arrays(dataset, number=None):
    return [
        (x["source_ids"].numpy(), x["target_ids"].numpy(), y.numpy())
        for x, y in itertools.islice(dataset, number)
    ]


def pairs_in(batches):
    """Undo the batches with plain loops: a sorted list of pairs of lists."""
    found = []
    for sources, inputs, labels in batches:
        for source, fed, label in zip(sources, inputs, labels, strict=True):
            if not source.any():
                assert not fed.any()
                assert not label.any()
                continue
            source = source[source != 0].tolist()
            label = label[label != 0].tolist()
            fed = fed[fed != 0].tolist()
            assert source.pop() == 2
            assert label.pop() == 2
            assert fed == [1, *label]
            found.append((source, label))
    return sorted(found)


def expected_pairs(sources, targets):
    both = zip(sources, targets, strict=True)
    return sorted((s.tolist(), t.tolist()) for s, t in both)


@settings(max_examples=25, deadline=None)
@given(
    PAIRS,
    st.integers(24, 150),
    st.integers(1, 4),
    st.integers(0, 3),
    st.booleans(),
)
def test_an_epoch_holds_every_pair_once_in_a_listed_shape(
    lengths, tokens_per_batch, max_shapes, seed, shuffle
):
    sources, targets = made(lengths)
    batches = BucketedBatches(
        sources, targets, tokens_per_batch, max_shapes=max_shapes, seed=seed
    )
    rows = arrays(batches.dataset(shuffle=shuffle, repeat=False))
    assert len(rows) == batches.steps_per_epoch
    assert len(batches.shapes) <= max_shapes
    for source, fed, label in rows:
        shape = (*source.shape, label.shape[1])
        assert fed.shape == label.shape
        assert shape in batches.shapes
        assert shape[0] * max(shape[1:]) <= tokens_per_batch
        assert {source.dtype, fed.dtype, label.dtype} == {np.dtype("int32")}
    assert pairs_in(rows) == expected_pairs(sources, targets)
    real = sum((s != 0).sum() + (y != 0).sum() for s, _, y in rows)
    size = sum(s.size + y.size for s, _, y in rows)
    assert batches.padding_share == pytest.approx(1 - real / size)


@pytest.mark.parametrize("start_step", [0, 1, 6, 7, 17])
def test_a_later_start_goes_on_as_the_uninterrupted_run(start_step):
    def fresh():
        return BucketedBatches(*made(some_lengths(53)), 120, seed=3)

    whole = arrays(fresh().dataset(), start_step + 11)
    late = arrays(fresh().dataset(start_step), 11)
    assert fresh().steps_per_epoch < 17
    for expected, found in zip(whole[start_step:], late, strict=True):
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("step", [0, 5, 19])
def test_a_state_is_taken_and_given_though_the_step_says_it_all(step):
    def fresh():
        return BucketedBatches(*made(some_lengths(53)), 120, seed=3)

    batches = fresh()
    whole = arrays(batches.dataset(), step + 11)
    state = json.loads(json.dumps(batches.state(step)))
    late = arrays(fresh().dataset(step, state), 11)
    for expected, found in zip(whole[step:], late, strict=True):
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_after_the_only_epoch_nothing_is_left():
    batches = BucketedBatches(*made(some_lengths(53)), 120)
    step = batches.steps_per_epoch + 2
    assert arrays(batches.dataset(step, repeat=False)) == []


def test_every_epoch_is_whole_and_in_another_order():
    sources, targets = made(some_lengths(53))
    batches = BucketedBatches(sources, targets, 120, seed=3)
    steps = batches.steps_per_epoch
    rows = arrays(batches.dataset(), 2 * steps)
    first, second = rows[:steps], rows[steps:]
    assert pairs_in(first) == expected_pairs(sources, targets)
    assert pairs_in(second) == pairs_in(first)
    assert [a[0].tolist() for a in first] != [a[0].tolist() for a in second]


def test_another_seed_gives_another_order():
    first, second = (
        arrays(
            BucketedBatches(*made(some_lengths(53)), 120, seed=s).dataset(), 5
        )
        for s in (0, 1)
    )
    assert [a[0].tolist() for a in first] != [a[0].tolist() for a in second]


def test_the_buckets_are_mixed():
    batches = BucketedBatches(*made(some_lengths(997)), 100)
    rows = arrays(batches.dataset(shuffle=True, repeat=False))
    widths = [source.shape for source, _, _ in rows]
    changes = sum(a != b for a, b in itertools.pairwise(widths))
    assert changes > 3 * len(batches.shapes)


def test_without_shuffling_pairs_keep_their_order_in_a_bucket():
    batches = BucketedBatches(*made(some_lengths(53)), 100, bucket_edges=[25])
    rows = arrays(batches.dataset(shuffle=False))
    firsts = [n for source, _, _ in rows for n in source[:, 0].tolist() if n]
    assert firsts == sorted(firsts)
    assert len(firsts) == 53


def test_the_rows_are_those_worked_out_by_hand():
    sources = [np.array([5, 6, 7]), np.array([8])]
    targets = [np.array([9]), np.array([], np.int32)]
    batches = BucketedBatches(
        sources,
        targets,
        12,
        bucket_edges=[(4, 3)],
        start_id=21,
        end_id=22,
        pad_id=3,
    )
    assert batches.shapes == [(2, 4, 3)]
    ((source, fed, label),) = arrays(batches.dataset(shuffle=False))
    assert source.tolist() == [[5, 6, 7, 22], [8, 22, 3, 3]]
    assert fed.tolist() == [[21, 9, 3], [21, 3, 3]]
    assert label.tolist() == [[9, 22, 3], [22, 3, 3]]
    assert batches.padding_share == pytest.approx(5 / 14)


def test_a_last_batch_is_filled_up_with_rows_of_padding():
    batches = BucketedBatches(*made([(3, 3)] * 7), 12, bucket_edges=[4])
    assert batches.shapes == [(3, 4, 4)]
    last = arrays(batches.dataset(shuffle=False))[-1]
    for rows in last:
        assert rows.any(axis=1).tolist() == [True, False, False]


def test_both_lengths_of_an_edge_count():
    lengths = [(9, 2), (2, 9), (2, 2), (9, 9)]
    edges = [(3, 10), (10, 3), 3, (10, 10)]
    batches = BucketedBatches(*made(lengths), 10, bucket_edges=edges)
    assert batches.shapes == [(1, 3, 3), (1, 3, 10), (1, 10, 3), (1, 10, 10)]
    assert batches.num_dropped == 0


@pytest.mark.parametrize(
    "limits",
    [
        {"tokens_per_batch": 10},
        {"tokens_per_batch": 100, "max_sequence_length": 10},
        {"tokens_per_batch": 100, "bucket_edges": [5, 10]},
    ],
)
def test_too_long_pairs_are_dropped_and_counted(limits):
    sources, targets = made([(9, 9), (10, 1), (1, 10), (2, 3)])
    batches = BucketedBatches(sources, targets, **limits)
    assert (batches.num_pairs, batches.num_dropped) == (2, 2)
    kept = expected_pairs([sources[0], sources[3]], [targets[0], targets[3]])
    assert pairs_in(arrays(batches.dataset(shuffle=False))) == kept
    assert "(2 dropped: longer than 10 tokens)" in batches.describe()


def test_the_description_is_one_line_for_people():
    batches = BucketedBatches(*made([(3, 2)] * 2003), 40, bucket_edges=[(4, 4)])
    assert batches.describe() == (
        "2,003 pairs, 1 shape 10×(4+4), 201 steps an epoch, 12.8% padding"
    )


def test_keras_knows_how_many_batches_come():
    batches = BucketedBatches(*made(some_lengths(53)), 120)
    once = batches.dataset(shuffle=False)
    assert int(once.cardinality()) == batches.steps_per_epoch
    rest = batches.dataset(start_step=2, repeat=False)
    assert int(rest.cardinality()) == batches.steps_per_epoch - 2
    assert len(arrays(rest)) == batches.steps_per_epoch - 2
    endless = batches.dataset().cardinality()
    assert int(endless) == tf.data.INFINITE_CARDINALITY


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
            {"bucket_edges": [2, 3]},
            DataError,
            "the shortest takes 4 tokens .* and 3 fit",
        ),
        ({"bucket_edges": [50]}, ValueError, "Received: 50; at most 40 fit"),
        ({"bucket_edges": []}, ValueError, "must hold a length"),
        ({"bucket_edges": [0]}, ValueError, "at least 1"),
        ({"bucket_edges": [(1, 2, 3)]}, ValueError, r"Received: \(1, 2, 3\)"),
        ({"tokens_per_batch": 0}, ValueError, "`tokens_per_batch`"),
        ({"max_sequence_length": 0}, ValueError, "`max_sequence_length`"),
        ({"max_shapes": 0}, ValueError, "`max_shapes`"),
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
        BucketedBatches(**given)


def test_a_hundred_thousand_pairs_are_planned_quickly():
    lengths = some_lengths(100_000, longest=97)
    batches = BucketedBatches(*made(lengths), 4096)
    start = time.perf_counter()
    next(iter(batches.dataset(start_step=3 * batches.steps_per_epoch)))
    assert time.perf_counter() - start < 3


def test_the_tokens_of_a_step_are_the_real_ones_on_average():
    sources = [np.array([5, 6]), np.array([7]), np.array([7, 8, 9])]
    targets = [np.array([8]), np.array([9, 10, 11]), np.array([4])]
    batches = BucketedBatches(sources, targets, 4, bucket_edges=[4])
    assert batches.steps_per_epoch == 3
    # With an end for each row: 9 tokens of the sources, 8 of the targets.
    assert batches.tokens_per_step == 17 / 3

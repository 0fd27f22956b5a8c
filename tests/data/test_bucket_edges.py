"""The choice of bucket edges against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.data.bucket_edges import assign_buckets
from keras_tfm.data.bucket_edges import batch_rows
from keras_tfm.data.bucket_edges import choose_bucket_edges

LENGTHS = st.lists(
    st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=70
)


def cheapest(source, target, edges):
    fitting = [e for e in edges if e[0] >= source and e[1] >= target]
    return min(map(sum, fitting), default=None)


@settings(max_examples=60, deadline=None)
@given(LENGTHS, LENGTHS)
def test_each_pair_gets_the_cheapest_bucket_that_fits(lengths, edges):
    sources, targets = np.array(lengths).T
    chosen = assign_buckets(sources, targets, edges)
    for (source, target), bucket in zip(lengths, chosen, strict=True):
        expected = cheapest(source, target, edges)
        assert (sum(edges[bucket]) if bucket >= 0 else None) == expected


@settings(max_examples=40, deadline=None)
@given(LENGTHS, st.integers(1, 4))
def test_every_pair_fits_into_one_of_few_edges(lengths, max_shapes):
    sources, targets = np.array(lengths).T
    edges = choose_bucket_edges(sources, targets, 101, max_shapes)
    assert 1 <= len(edges) <= max_shapes
    assert assign_buckets(sources, targets, edges).min() >= 0


@given(st.integers(1, 1000), st.integers(1, 50), st.integers(50, 500))
def test_rows_stay_within_the_budget_and_hold_all_pairs(pairs, length, budget):
    rows, batches = batch_rows(pairs, (length, 1), budget)
    assert rows * length <= budget
    assert rows * batches >= pairs
    assert rows * batches - pairs < batches
    assert batches == -(-pairs // (budget // length))


def positions(lengths, edges):
    return sum(cheapest(*length, edges) for length in lengths)


@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_near_the_best_there_is(seed):
    random = np.random.default_rng(seed)
    sources = random.integers(2, 9, 5003)
    targets = np.minimum(sources + random.integers(0, 3, 5003), 9)
    lengths = list(zip(sources.tolist(), targets.tolist(), strict=True))
    last = (int(sources.max()), int(targets.max()))
    counted = sorted(set(lengths))
    weights = [lengths.count(length) for length in counted]

    def cost(edges):
        return sum(
            weight * cheapest(*length, [*edges, last])
            for length, weight in zip(counted, weights, strict=True)
        )

    every = list(itertools.product(range(2, 10), range(2, 10)))
    best = min(map(cost, itertools.combinations(every, 2)))
    chosen = choose_bucket_edges(sources, targets, 97, max_shapes=3)
    assert len(chosen) == 3
    assert positions(lengths, chosen) <= 1.03 * best


def test_pairs_of_one_length_need_one_shape():
    edges = choose_bucket_edges(np.full(99, 7), np.full(99, 5), 70, 4)
    assert edges == [(7, 5)]


def test_few_pairs_are_not_split_into_tiny_batches():
    lengths = np.arange(2, 13)
    assert choose_bucket_edges(lengths, lengths, 12 * 11, 4) == [(12, 12)]

"""What decoding computes, against NumPy and plain Python."""

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from keras import ops

from keras_tfm.ops.search import GROUP
from keras_tfm.ops.search import NEVER
from keras_tfm.ops.search import ancestor_mask
from keras_tfm.ops.search import coverage_penalty
from keras_tfm.ops.search import group_maxima
from keras_tfm.ops.search import is_possible
from keras_tfm.ops.search import keep_top_k
from keras_tfm.ops.search import keep_top_p
from keras_tfm.ops.search import largest
from keras_tfm.ops.search import repeated_ngrams
from keras_tfm.ops.search import select_beams
from keras_tfm.ops.search import select_columns


def array(tensor):
    return ops.convert_to_numpy(tensor)


def scores_with_ties(rows, length, seed=0):
    """Draw few distinct values, so that most of them have equals."""
    generator = np.random.default_rng(seed)
    return generator.integers(-3, 4, (rows, length)).astype("float32")


def places_of_largest(values, k):
    return np.argsort(-values, axis=-1, kind="stable")[:, :k]


@pytest.mark.parametrize(
    ("length", "k"),
    [(7, 7), (24, 3), (25, 1), (50, 1), (103, 3), (175, 7), (199, 7), (211, 2)],
)
def test_the_largest_are_found_and_of_equals_the_first(length, k):
    ties = scores_with_ties(13, length)
    distinct = np.random.default_rng(1).normal(size=(13, length))
    # Equals in other places than the greatest of their groups.
    wide = np.random.default_rng(2).integers(0, length // 2, (61, length))
    rare = np.where(np.arange(length) == length - 1, 5.0, ties)
    never = np.where(ties > 1, ties, NEVER)
    impossible = np.where(ties > 1, ties, -np.inf)
    values = np.concatenate([ties, distinct, wide, rare, never, impossible])
    values = values.astype("float32")
    expected = places_of_largest(values, k)
    for build in (swift, compiled):
        run = build(lambda values: largest(values, k))
        found, places = run(ops.convert_to_tensor(values))
        np.testing.assert_array_equal(array(places), expected)
        np.testing.assert_array_equal(
            array(found), np.take_along_axis(values, expected, 1)
        )
    assert keras.backend.standardize_dtype(places.dtype) == "int32"


def test_the_groups_cover_all_but_the_rest():
    values = scores_with_ties(3, 2 * GROUP + 11)
    whole = values[:, : 2 * GROUP].reshape(3, 2, GROUP)
    np.testing.assert_array_equal(
        array(group_maxima(ops.convert_to_tensor(values))), whole.max(-1)
    )


def test_beams_and_columns_are_picked_by_row():
    values = np.arange(3 * 5 * 7 * 2).reshape(3, 5, 7, 2)
    beams = np.array([[4, 4], [0, 1], [2, 3]])
    found = array(select_beams(ops.convert_to_tensor(values), beams))
    expected = np.stack([values[row][beams[row]] for row in range(3)])
    np.testing.assert_array_equal(found, expected)
    flat = ops.convert_to_tensor(values[:, :, 0, 0])
    np.testing.assert_array_equal(
        array(select_columns(flat, beams)), expected[..., 0, 0]
    )


def test_never_is_impossible_and_a_sum_of_it_too():
    scores = np.array([NEVER, NEVER - 40.0, 2 * NEVER, -1e6, 0.0], "float32")
    assert array(is_possible(scores)).tolist() == [False] * 3 + [True] * 2


@pytest.mark.parametrize("k", [1, 2, 5, 7, 11])
def test_top_k_keeps_the_largest_and_what_equals_the_last(k):
    scores = scores_with_ties(17, 7)
    found = array(keep_top_k(ops.convert_to_tensor(scores), k))
    lowest = np.sort(scores, axis=1)[:, ::-1][:, min(k, 7) - 1][:, None]
    expected = np.where(scores >= lowest, scores, np.float32(NEVER))
    np.testing.assert_array_equal(found, expected)
    if k < 7:
        assert (found == scores).sum() > 17 * k  # Some had equals.


@pytest.mark.parametrize(
    ("p", "kept"),
    [
        (1e-6, [1]),
        (0.499, [1]),
        (0.501, [1, 3]),
        (0.749, [1, 3]),
        (0.751, [0, 1, 2, 3]),  # Two equals come together.
        (0.99, [0, 1, 2, 3]),
        (1.0, [0, 1, 2, 3]),
    ],
)
def test_top_p_keeps_the_fewest_that_sum_to_it(p, kept):
    probabilities = np.array([[0.125, 0.5, 0.125, 0.25]])
    # Logits need not sum to 1.
    scores = (np.log(probabilities) + 3.0).astype("float32")
    found = array(keep_top_p(ops.convert_to_tensor(scores), p))[0]
    assert np.flatnonzero(found > NEVER / 2).tolist() == kept
    np.testing.assert_array_equal(found[kept], scores[0][kept])
    assert (np.delete(found, kept) == np.float32(NEVER)).all()


def test_top_p_is_the_plain_loop_on_random_rows():
    generator = np.random.default_rng(5)
    scores = generator.normal(0, 2, (31, 53)).astype("float32")
    scores[3, 5:] = NEVER
    found = array(keep_top_p(ops.convert_to_tensor(scores), 0.7))
    for row, kept in zip(scores.astype("float64"), found, strict=True):
        probabilities = np.exp(row) / np.exp(row).sum()
        order = np.argsort(-row)
        count = np.searchsorted(np.cumsum(probabilities[order]), 0.7) + 1
        expected = np.sort(order[:count])
        np.testing.assert_array_equal(
            np.flatnonzero(kept > NEVER / 2), expected
        )


def test_a_top_p_of_1_keeps_the_rarest():
    scores = ops.convert_to_tensor([[0.0, *[-30.0] * 40]])
    assert (array(keep_top_p(scores, 1.0)) > NEVER / 2).all()


def repeating_tokens(written, size, vocabulary_size):
    """Return the tokens that would repeat an n-gram, by trying each."""

    def ngrams(ids):
        return [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]

    return [
        token
        for token in range(vocabulary_size)
        if len(written) + 1 >= size
        and tuple([*written, token][-size:]) in ngrams(written)
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 13])
def test_repeated_ngrams_are_those_of_plain_python(size):
    ids = np.random.default_rng(6).integers(0, 3, (19, 11), dtype="int32")
    build = swift(lambda ids, index: repeated_ngrams(ids, index, size, 5))
    some = False
    for index in (0, 1, 2, 4, 5, 10, 11):
        # What lies behind the index must not count.
        found = array(
            build(ops.convert_to_tensor(ids), ops.convert_to_tensor(index))
        )
        assert found.shape == (19, 5)
        for row, repeated in zip(ids, found, strict=True):
            expected = repeating_tokens(row[:index].tolist(), size, 5)
            assert np.flatnonzero(repeated).tolist() == expected
            some = some or bool(expected)
    assert some == (size < 13)


def test_a_beam_sees_the_tokens_that_it_descends_from():
    rows, beams, length = 2, 3, 5
    ancestors = np.random.default_rng(7).integers(
        0, beams, (rows, beams, length), dtype="int32"
    )
    for index in range(length):
        found = array(
            ancestor_mask(
                ops.convert_to_tensor(ancestors), ops.convert_to_tensor(index)
            )
        )
        expected = np.zeros((rows, 1, beams, length * beams), bool)
        for row, beam, time in np.ndindex(rows, beams, index + 1):
            place = time * beams + ancestors[row, beam, time]
            expected[row, 0, beam, place] = True
        np.testing.assert_array_equal(found, expected)


def test_coverage_sums_the_logs_of_what_was_seen_up_to_1():
    coverage = np.array(
        [
            [[0.5, 2.0, 0.25], [1.0, 1.0, 1.0]],
            [[0.0, 0.1, 3.0], [0.5, 0.0, 0.0]],
        ]
    )
    mask = np.array([[True, True, True], [True, False, False]])
    found = array(coverage_penalty(ops.convert_to_tensor(coverage), mask))
    # What nothing attended to is no minus infinity; padding does not count.
    expected = [[np.log(0.5 * 0.25), 0.0], [np.log(1e-6), np.log(0.5)]]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

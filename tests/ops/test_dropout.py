"""Dropout: the right share, nothing in common, and exactly scaled."""

import functools
import itertools

import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import gradients
from backend_functions import swift
from keras import ops
from keras.backend import standardize_dtype

from keras_tfm.ops.dropout import dropout
from keras_tfm.ops.dropout import keep_mask
from keras_tfm.ops.dropout import kept_places

SHAPE = (31, 37, 127)
SIZE = 31 * 37 * 127
RATES = [1e-4, 0.05, 0.1, 0.3, 0.5, 0.9]
# As Keras makes them: a random word for the layer, and the calls of the layer.
SEEDS = [(2017_06_12, 0), (2017_06_12, 41), (0, 0), (2**32 - 1, 2**31 + 3)]


@functools.cache
def drawing(rate, shape=SHAPE):
    return compiled(lambda seed: keep_mask(shape, rate, seed))


def as_seed(words):
    return ops.convert_to_tensor(np.array(words, "uint32"))


@functools.cache
def mask(rate, words, shape=SHAPE):
    return ops.convert_to_numpy(drawing(rate, shape)(as_seed(words)))


def standard(rate, words):
    """Return the mask as numbers of mean 0 and variance 1."""
    return (mask(rate, words) - (1 - rate)) / (rate * (1 - rate)) ** 0.5


def score(products):
    """Add up numbers of mean 0 and variance 1: a standard normal number."""
    return abs(products.sum()) / products.size**0.5


def later(words):
    """Return the seeds that follow: the next call, and the next layer."""
    first, second = words
    return [
        (first, (second + 1) % 2**32),
        ((first + 1) % 2**32, second),
        (second, first),
        (first ^ 0x9E3779B9, second),
    ]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("words", SEEDS)
def test_the_share_of_what_is_kept_is_exact(rate, words):
    found = mask(rate, words)
    assert found.shape == SHAPE
    assert found.dtype == bool
    dropped = SIZE - np.count_nonzero(found)
    deviation = (SIZE * rate * (1 - rate)) ** 0.5
    assert abs(dropped - SIZE * rate) < 3.5 * deviation


@pytest.mark.parametrize("rate", RATES[1:])
@pytest.mark.parametrize("words", SEEDS)
def test_neighbours_have_nothing_in_common(rate, words):
    found = standard(rate, words)
    for axis in range(3):
        moved = np.moveaxis(found, axis, 0)
        for lag in (1, 2, 3, 7, 16):
            assert score(moved[lag:] * moved[:-lag]) < 4.5, (axis, lag)
    # Nor has a place with any other at a distance: the largest of so many.
    flat = found.ravel()
    power = abs(np.fft.rfft(flat)) ** 2
    assert abs(np.fft.irfft(power)[1:70_000]).max() < 6 * SIZE**0.5


@pytest.mark.parametrize("rate", RATES[1:])
@pytest.mark.parametrize("words", SEEDS)
def test_the_next_call_and_the_next_layer_have_nothing_in_common(rate, words):
    one = standard(rate, words)
    for other_words in later(words):
        if other_words == words:
            continue
        other = standard(rate, other_words)
        assert score(one * other) < 4.5, other_words
        # Nor is one mask a piece of the other, moved.
        product = np.fft.rfft(one.ravel()) * np.fft.rfft(other.ravel()).conj()
        moved = np.fft.irfft(product, SIZE)
        assert abs(moved).max() < 6 * SIZE**0.5, other_words


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("words", SEEDS)
def test_no_row_and_no_channel_is_kept_more_often(rate, words):
    found = standard(rate, words)
    for axes in ((0, 1), (1, 2), (0, 2), (0,), (2,)):
        count = np.prod([SHAPE[axis] for axis in axes])
        means = found.sum(axis=axes) / count**0.5
        # Of up to 4,699; a sum of 31 has a long tail where few are dropped.
        assert abs(means).max() < 5.5
        degrees = means.size
        chi_square = (means**2).sum()
        assert abs(chi_square - degrees) < 4.5 * (2 * degrees) ** 0.5


@pytest.mark.parametrize("words", SEEDS)
def test_all_patterns_of_eight_neighbours_are_as_frequent(words):
    patterns = np.packbits(mask(0.5, words).ravel()[: SIZE // 8 * 8])
    counts = np.bincount(patterns, minlength=256)
    chi_square = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    # 255 degrees of freedom.
    assert abs(chi_square - 255) < 4.5 * (2 * 255) ** 0.5


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_over_the_calls_each_place_is_dropped_as_often(rate):
    shape, calls = (13, 17), 601
    draw = drawing(rate, shape)
    found = np.stack(
        [
            ops.convert_to_numpy(draw(as_seed((77, call))))
            for call in range(calls)
        ]
    )
    found = (found - (1 - rate)) / (rate * (1 - rate)) ** 0.5
    means = found.sum(axis=0) / calls**0.5
    assert abs(means).max() < 4.5
    assert 0.85 < means.std() < 1.15
    for lag in (1, 2, 3, 64):
        products = found[lag:] * found[:-lag]
        assert score(products) < 4.5
        assert abs(products.sum(axis=0)).max() < 5 * calls**0.5


def unmixed(bits):
    """Undo MurmurHash3's last step."""
    bits ^= bits >> 16
    bits = bits * pow(0xC2B2AE35, -1, 2**32) % 2**32
    bits ^= (bits >> 13) ^ (bits >> 26)
    bits = bits * pow(0x85EBCA6B, -1, 2**32) % 2**32
    return bits ^ (bits >> 16)


def test_where_counters_overlap_masks_still_differ():
    # The words of a seed decide where its counter starts. Here are two that
    # start five steps from each other, as happens to some of many calls.
    zero = 0x514E28B7  # The hash of 1.
    first, start = 1, 0x12345678
    seeds = [
        (first, unmixed((start + steps * 0x9E3779B9) % 2**32) ^ zero)
        for steps in (0, 5)
    ]
    one, other = (standard(0.5, words).ravel() for words in seeds)
    assert score(one * other) < 4.5
    for moved in (5, -5):
        assert score(one * np.roll(other, moved)) < 4.5


def test_a_share_next_to_1_drops_all_and_next_to_0_nothing():
    assert not mask(1 - 1e-12, SEEDS[0], (997,)).any()
    assert mask(1e-12, SEEDS[0], (997,)).all()


def test_the_mask_is_that_of_the_seed_whatever_the_shape():
    flat = mask(0.3, (3, 5), (2 * 3 * 5 * 7,))
    for shape in ((2, 105), (6, 5, 7), (7, 2, 3, 5), (210, 1)):
        np.testing.assert_array_equal(
            mask(0.3, (3, 5), shape), flat.reshape(shape)
        )
    np.testing.assert_array_equal(mask(0.3, (3, 5), (101,)), flat[:101])
    assert mask(0.3, (3, 5), ()).shape == ()


@pytest.mark.parametrize("words", SEEDS)
def test_places_are_those_of_the_whole_mask(words):
    rows, columns, length = SHAPE[0] * SHAPE[1], SHAPE[2], SHAPE[2]
    places = np.arange(0, rows, 7)[:, None], np.arange(3, columns, 5)
    found = compiled(lambda seed: kept_places(*places, length, 0.3, seed))(
        as_seed(words)
    )
    expected = mask(0.3, words).reshape(rows, columns)[places]
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


@pytest.mark.parametrize("length", [2**16, 65_537, 2**31 - 1])
def test_the_mask_of_more_places_than_32_bits_count_does_not_repeat(length):
    # Rows whose places are the same but for a multiple of 2^32.
    apart = 2**32 // length
    rows = np.arange(3, dtype="int64")[:, None] * apart
    start = 2**32 * np.arange(3, dtype="int64")[:, None] - rows * length
    columns = start + np.arange(30_011) + 7
    found = kept_places(rows, columns, length, 0.5, as_seed((3, 5)))
    found = 2.0 * ops.convert_to_numpy(found) - 1
    for one, other in itertools.combinations(range(3), 2):
        assert score(found[one] * found[other]) < 4.5
    assert abs(found.mean(axis=1)).max() < 4.5 / 30_011**0.5


def test_integers_of_any_kind_are_seeds():
    expected = mask(0.3, (3, 2**32 - 1), (97,))
    for words in ([3, -1], np.array([3, -1], "int32")):
        found = keep_mask((97,), 0.3, words)
        np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


# 1 / 0.7 in 24, 11 and 8 binary digits.
SCALES = {
    "float32": 11983726 / 2**23,
    "float16": 1463 / 2**10,
    "bfloat16": 183 / 2**7,
}


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("run", [swift, compiled])
def test_what_is_kept_is_scaled_by_exactly_what_is_left(dtype, run):
    values = ops.ones((11, 97), dtype)
    found = run(lambda x, seed: dropout(x, 0.3, seed))(values, as_seed((3, 5)))
    assert standardize_dtype(found.dtype) == dtype
    expected = np.where(mask(0.3, (3, 5), (11, 97)), SCALES[dtype], 0.0)
    found = ops.convert_to_numpy(ops.cast(found, "float32"))
    np.testing.assert_array_equal(found, expected.astype("float32"))


@pytest.mark.parametrize("run", [swift, compiled])
def test_each_value_is_kept_or_0(run):
    values = np.random.default_rng(1).normal(size=(11, 97)).astype("float32")
    found = run(lambda x, seed: dropout(x, 0.75, seed))(
        ops.convert_to_tensor(values), as_seed((3, 5))
    )
    expected = np.where(mask(0.75, (3, 5), (11, 97)), values * 4, 0)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("jit", [False, True])
def test_what_is_dropped_reaches_neither_output_nor_gradient(garbage, jit):
    rng = np.random.default_rng(1)
    values, factors = rng.normal(size=(2, 11, 97)).astype("float32")
    keep = mask(0.2, (3, 5), (11, 97))
    spoilt = np.where(keep, values, np.float32(garbage))
    seed = as_seed((3, 5))
    found = dropout(ops.convert_to_tensor(spoilt), 0.2, seed)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(found), np.where(keep, values * 1.25, 0)
    )

    def total(x):
        return ops.sum(dropout(x, 0.2, seed) * factors)

    ((gradient,), _) = gradients(total, [spoilt], jit=jit)
    np.testing.assert_array_equal(gradient, np.where(keep, factors * 1.25, 0))


def test_without_a_share_the_values_come_back():
    values = ops.ones((3, 5))
    assert dropout(values, 0, [3, 5]) is values
    assert dropout(values, 0.0, None) is values


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5, float("nan"), "half", None])
@pytest.mark.parametrize("function", [dropout, keep_mask])
def test_a_share_out_of_range_is_refused(function, rate):
    first = (3, 5) if function is keep_mask else ops.ones((3, 5))
    with pytest.raises(ValueError, match=r"`rate` must be .* \[0, 1\).*rate="):
        function(first, rate, [3, 5])


def test_seeds_that_were_tried_are_not_all_alike():
    masks = [mask(0.5, words) for words in SEEDS]
    for one, other in itertools.combinations(masks, 2):
        assert 0.49 < (one == other).mean() < 0.51

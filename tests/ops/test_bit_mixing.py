"""Hashes of counters: the published one, one to one, and well mixed."""

import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from keras import ops

from keras_tfm.ops.bit_mixing import GOLDEN
from keras_tfm.ops.bit_mixing import as_unsigned
from keras_tfm.ops.bit_mixing import mix_bits
from keras_tfm.ops.bit_mixing import unsigned

WORD = 2**32
KEYS = [None, 0, 1, 0x80000000, 0xDEADBEEF]


def fmix32(bits, key=0):
    """Take MurmurHash3's last step with Python's own integers."""
    bits ^= bits >> 16
    bits = bits * 0x85EBCA6B % WORD
    bits ^= bits >> 13
    bits = (bits ^ key) * 0xC2B2AE35 % WORD
    return bits ^ (bits >> 16)


def mixed(numbers, key=None, run=swift):
    bits = ops.convert_to_tensor(np.array(numbers, "uint32"))
    if key is None:
        return ops.convert_to_numpy(run(mix_bits)(bits))
    return ops.convert_to_numpy(run(mix_bits)(bits, unsigned(key)))


def some_numbers(count=4001):
    random = np.random.default_rng(5).integers(0, WORD, count, "uint32")
    return np.concatenate([np.arange(count, dtype="uint32"), random])


def test_the_hash_is_the_published_one():
    # MurmurHash3 of no bytes at all is this step of its seed.
    assert mixed([0, 1, 0xFFFFFFFF]).tolist() == [0, 0x514E28B7, 0x81F16F39]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("run", [swift, compiled])
def test_the_hash_is_that_of_plain_integers(key, run):
    numbers = [*some_numbers(499).tolist(), WORD - 1, 0x80000000]
    found = mixed(numbers, key, run)
    assert found.dtype == np.uint32
    assert found.tolist() == [fmix32(number, key or 0) for number in numbers]


def test_the_key_0_is_no_key_and_each_other_one_a_hash_of_its_own():
    numbers = some_numbers()
    found = [mixed(numbers, key) for key in KEYS]
    np.testing.assert_array_equal(found[0], found[1])
    for index, one in enumerate(found[1:], start=1):
        for other in found[index + 1 :]:
            assert (one != other).all()


@pytest.mark.parametrize("key", KEYS)
def test_no_two_numbers_have_one_hash(key):
    # Of so many random hashes eight pairs would agree.
    numbers = np.unique(some_numbers(2**17))
    assert len(np.unique(mixed(numbers, key))) == len(numbers)


@pytest.mark.parametrize("key", [None, 0xDEADBEEF])
def test_each_bit_changes_every_bit_half_of_the_time(key):
    numbers = some_numbers(2503)
    places = np.arange(32, dtype="uint32")
    flipped = numbers[:, None] ^ (np.uint32(1) << places)
    changed = mixed(flipped, key) ^ mixed(numbers, key)[:, None]
    # Of each bit put in, the share of flips of each bit that comes out.
    shares = np.stack([(changed >> bit & 1).mean(axis=0) for bit in places])
    assert shares.shape == (32, 32)
    # The standard deviation is 0.007.
    assert abs(shares - 0.5).max() < 0.035
    assert abs(shares.mean() - 0.5) < 0.002


def test_the_step_of_a_counter_is_odd_so_that_all_places_differ():
    assert GOLDEN % 2 == 1
    assert abs(GOLDEN / WORD - (5**0.5 - 1) / 2) < 1 / WORD
    places = np.arange(2**18, dtype="uint32") * np.uint32(GOLDEN)
    assert len(np.unique(places)) == 2**18


def test_integers_of_any_kind_become_unsigned():
    for kind in ("int32", "int64", "uint32", "uint8"):
        found = as_unsigned(np.array([0, 1, 200], kind))
        assert ops.convert_to_numpy(found).dtype == np.uint32
        assert ops.convert_to_numpy(found).tolist() == [0, 1, 200]
    negative = as_unsigned(np.array([-1, -(2**31)], "int32"))
    assert ops.convert_to_numpy(negative).tolist() == [WORD - 1, 2**31]
    assert int(as_unsigned(7)) == 7
    assert ops.convert_to_numpy(unsigned(WORD - 1)).tolist() == WORD - 1

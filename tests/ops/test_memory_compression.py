"""Slots of several positions, one position at a time."""

import numpy as np
import pytest
from keras import ops

from keras_tfm.ops.memory_compression import latest_windows
from keras_tfm.ops.memory_compression import number_of_slots
from keras_tfm.ops.memory_compression import real_slots
from keras_tfm.ops.memory_compression import slot_inputs
from keras_tfm.ops.memory_compression import slots_of_ancestors
from keras_tfm.ops.memory_compression import visible_slots
from keras_tfm.ops.memory_compression import write_slots

B, C, K = 2, 5, 3
each_factor = pytest.mark.parametrize("factor", [1, 2, 3, 7])


def members(slot, factor, length, causal):
    """Return the positions of a slot, `None` where there is none."""
    start = slot * factor - (factor - 1 if causal else 0)
    places = range(start, start + factor)
    return [p if 0 <= p < length else None for p in places]


@each_factor
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", range(1, 12))
def test_a_slot_holds_its_positions_side_by_side(factor, causal, length):
    rng = np.random.default_rng(length)
    sequence = rng.normal(size=(B, length, C)).astype("float32")
    padding = rng.random((B, length)) < 0.5
    found = ops.convert_to_numpy(slot_inputs(sequence, factor, causal))
    real = ops.convert_to_numpy(real_slots(padding, factor, causal))
    slots = number_of_slots(length, factor)
    assert found.shape == (B, slots, factor * C)
    for slot in range(slots):
        places = members(slot, factor, length, causal)
        for number, place in enumerate(places):
            expected = 0.0 if place is None else sequence[:, place]
            part = found[:, slot, number * C : (number + 1) * C]
            np.testing.assert_array_equal(
                part, np.broadcast_to(expected, (B, C))
            )
        places = [place for place in places if place is not None]
        np.testing.assert_array_equal(
            real[:, slot], padding[:, places].any(axis=1)
        )


@each_factor
def test_a_query_sees_the_slots_that_have_ended(factor):
    found = ops.convert_to_numpy(visible_slots(np.arange(3, 11), 6, factor))
    for row, query in enumerate(range(3, 11)):
        for slot in range(6):
            last = max(
                p for p in members(slot, factor, 99, True) if p is not None
            )
            assert found[row, slot] == (last <= query)


@each_factor
@pytest.mark.parametrize("chunks", [[1] * 11, [4, 1, 6], [11]])
def test_a_memory_is_written_as_the_positions_come(factor, chunks):
    length = sum(chunks)
    rng = np.random.default_rng(3)
    sequence = rng.normal(size=(B, length, C)).astype("float32")
    slots = number_of_slots(length, factor)
    memory = ops.zeros((B, slots, factor * C))
    latest, index = ops.zeros((B, factor - 1, C)), 0
    for size in chunks:
        new = sequence[:, index : index + size]
        latest = ops.concatenate([latest, new], axis=1)
        windows = latest_windows(latest, factor, index)
        windows = ops.reshape(windows, (B, size, factor * C))
        memory = write_slots(memory, windows, 1, factor, index)
        latest = latest[:, latest.shape[1] - factor + 1 :]
        index += size
        ended = number_of_slots(index, factor)
        expected = slot_inputs(sequence[:, :index], factor, causal=True)
        np.testing.assert_array_equal(memory[:, :ended], expected)
        assert (ops.convert_to_numpy(memory)[:, ended:] == 0.0).all()


@each_factor
def test_each_beam_has_the_windows_of_its_ancestors(factor):
    length = 9
    rng = np.random.default_rng(5)
    tokens = rng.normal(size=(B, length, K, C)).astype("float32")
    ancestors = rng.integers(0, K, (B, K, length)).astype("int32")
    latest = ops.zeros((B, (factor - 1) * K, C))
    for index in range(length):
        ancestors[:, :, index] = np.arange(K)
        latest = ops.concatenate([latest, tokens[:, index]], axis=1)
        windows = ops.convert_to_numpy(
            latest_windows(
                latest,
                factor,
                ops.convert_to_tensor(index, "int32"),
                ops.convert_to_tensor(ancestors),
            )
        )
        assert windows.shape == (B, K, factor, C)
        for row in range(B):
            for beam in range(K):
                for number in range(factor):
                    place = index - factor + 1 + number
                    expected = np.zeros(C)
                    if place >= 0:
                        own = ancestors[row, beam, place]
                        expected = tokens[row, place, own]
                    np.testing.assert_array_equal(
                        windows[row, beam, number], expected
                    )
        latest = latest[:, K:]


def test_slots_are_written_for_every_beam():
    memory = np.zeros((B, 4 * K), "float32")
    new = np.arange(1, K + 1, dtype="float32") * np.ones((B, 1), "float32")
    written = ops.convert_to_numpy(write_slots(memory, new, 1, 3, 6, beams=K))
    expected = [0] * 6 + [1, 2, 3] + [0] * 3
    assert written.tolist() == [expected] * B
    # Position 7 ends no slot.
    written = ops.convert_to_numpy(write_slots(memory, new, 1, 3, 7, beams=K))
    assert (written == 0.0).all()


def test_a_beam_descends_from_one_alternative_of_each_slot():
    ancestors = np.random.default_rng(3).integers(0, K, (B, K, 8))
    found = ops.convert_to_numpy(
        slots_of_ancestors(ops.convert_to_tensor(ancestors, "int32"), 3, 3)
    )
    assert found.shape == (B, 1, K, 3 * K)
    for row in range(B):
        for beam in range(K):
            for slot in range(3 * K):
                end, own = slot // K * 3, slot % K
                assert found[row, 0, beam, slot] == (
                    ancestors[row, beam, end] == own
                )

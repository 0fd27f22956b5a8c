"""A ring of places against a cache that forgets nothing."""

import numpy as np
import pytest
from keras import ops

from keras_tfm.ops.ring_cache import RingSlots

B, H, K, LENGTH = 2, 5, 3, 17


def within(reach):
    return lambda queries, keys: queries - keys <= reach


def numbered(position, alternative):
    """Return what a token is: no two are equal."""
    return 10 * position + alternative + 1


@pytest.mark.parametrize("chunks", [[1] * 11, [4, 1, 5, 1], [11], [2, 9]])
@pytest.mark.parametrize("places", [1, 3, 4, 16])
def test_consecutive_tokens_see_the_latest_and_no_others(places, chunks):
    ring, index = ops.zeros((B, places)), 0
    for size in chunks:
        new = [numbered(index + i, 0) for i in range(size)]
        new = np.array([new] * B, "float32")
        slots = RingSlots(places, size, index)
        columns = ops.convert_to_numpy(slots.joined(ring, new, 1))[0]
        mask = ops.convert_to_numpy(slots.mask(within(places)))
        assert mask.shape == (1, 1, size, places + size)
        for i in range(size):
            seen = sorted(columns[mask[0, 0, i]].tolist())
            first = max(index + i - places, 0)
            expected = [numbered(p, 0) for p in range(first, index + i + 1)]
            assert seen == expected
        found = ops.convert_to_numpy(slots.query_positions)
        assert found.tolist() == [*range(index, index + size)]
        ring = slots.written(ring, new, 1)
        index += size


@pytest.mark.parametrize("places", [1, 2, 5])
def test_beams_see_their_own_ancestors(places):
    rng = np.random.default_rng(3)
    ring = ops.zeros((B, places * K, 2))
    ancestors = rng.integers(0, K, (B, K, LENGTH)).astype("int32")
    for index in range(9):
        # As in a search, a beam is its own ancestor now.
        ancestors[:, :, index] = np.arange(K)
        new = [[numbered(index, k)] * 2 for k in range(K)]
        new = np.array([new] * B, "float32")
        slots = RingSlots(places, K, index, ops.convert_to_tensor(ancestors))
        columns = ops.convert_to_numpy(slots.joined(ring, new, 1))[0, :, 0]
        mask = ops.convert_to_numpy(slots.mask(within(places)))
        assert mask.shape == (B, 1, K, (places + 1) * K)
        positions = ops.convert_to_numpy(slots.column_positions())
        for row in range(B):
            for beam in range(K):
                own = mask[row, 0, beam]
                expected = {
                    numbered(p, ancestors[row, beam, p])
                    for p in range(max(index - places, 0), index + 1)
                }
                assert set(columns[own].tolist()) == expected
                assert own.sum() == len(expected)
                for column in np.flatnonzero(own):
                    assert columns[column] // 10 == positions[column]
        ring = slots.written(ring, new, 1)


@pytest.mark.parametrize("beams", [1, K])
@pytest.mark.parametrize("index", [0, 2, 7])
def test_weights_are_spread_to_the_positions_they_are_of(index, beams):
    places, size = 4, 1
    ancestors = None
    if beams > 1:
        ancestors = ops.zeros((B, beams, LENGTH), "int32")
    slots = RingSlots(places, size * beams, index, ancestors)
    positions = ops.convert_to_numpy(slots.column_positions())
    alternatives = np.tile(np.arange(beams), places + size)
    tokens = numbered(positions, alternatives) * (positions >= 0)
    weights = np.broadcast_to(tokens, (B, H, size * beams, len(tokens))).astype(
        "float32"
    )
    spread = ops.convert_to_numpy(slots.spread(weights, LENGTH))
    assert spread.shape == (B, H, size * beams, LENGTH * beams)
    held = range(max(index - places, 0), index + 1)
    expected = [
        numbered(position, k) if position in held else 0
        for position in range(LENGTH)
        for k in range(beams)
    ]
    np.testing.assert_array_equal(spread[1, 2, 0], expected)

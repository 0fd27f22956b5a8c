"""Where new tokens stand in a cache, one by one."""

import numpy as np
from keras import ops

from keras_tfm.ops.cache_slots import cache_slots

B, K, T = 2, 3, 5


def test_tokens_without_a_search_follow_each_other():
    slots = cache_slots(7, 2, 3)
    assert int(slots.start) == 3
    assert ops.convert_to_numpy(slots.query_positions).tolist() == [3, 4]
    assert ops.convert_to_numpy(slots.key_positions).tolist() == [*range(7)]
    expected = [[1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0]]
    np.testing.assert_array_equal(ops.convert_to_numpy(slots.mask), expected)


def test_beams_are_alternatives_at_one_position():
    ancestors = np.random.default_rng(3).integers(0, K, (B, K, T))
    # Room for 4 of the 5 positions.
    slots = cache_slots(4 * K, K, 2, ops.convert_to_tensor(ancestors, "int32"))
    assert int(slots.start) == 2 * K
    assert ops.convert_to_numpy(slots.query_positions).tolist() == [2] * K
    positions = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert ops.convert_to_numpy(slots.key_positions).tolist() == positions
    mask = ops.convert_to_numpy(slots.mask)
    assert mask.shape == (B, 1, K, 4 * K)
    for row in range(B):
        for beam in range(K):
            for slot in range(4 * K):
                position, alternative = divmod(slot, K)
                own = ancestors[row, beam, position] == alternative
                assert mask[row, 0, beam, slot] == (own and position <= 2)

"""The record of attention weights, by hand."""

import numpy as np
from keras import ops

from keras_tfm.generation.attention_record import empty_record
from keras_tfm.generation.attention_record import read_record
from keras_tfm.generation.attention_record import written_record

B, K, H, T, S = 2, 3, 5, 4, 7


def weights_of(index):
    """Make weights that tell the position, row, head, beam and key."""
    cross = np.zeros((B, H, K, S)) + 1000 * index
    cross = cross + 100 * np.arange(B)[:, None, None, None]
    cross = cross + 10 * np.arange(K)[:, None] + np.arange(H)[:, None, None] / 8
    own = np.zeros((B, H, K, T * K))
    for beam in range(K):
        # Each beam sees itself at every position, and the others with 0.
        own[:, :, beam, np.arange(T) * K + beam] = np.arange(T) + 10 * beam
    return {
        "decoder": (ops.convert_to_tensor(own.astype("float16")),),
        "cross": (ops.convert_to_tensor(cross.astype("float32")),) * 2,
    }


def test_a_hypothesis_gets_the_weights_of_its_ancestors():
    record = empty_record(weights_of(0), T)
    for index in range(T):
        record = written_record(record, weights_of(index), index)
    rng = np.random.default_rng(2)
    ancestors = rng.integers(0, K, (B, 2, T)).astype("int32")
    real = np.ones((B, 2, T), bool)
    real[1, 1, 2:] = False
    found = read_record(
        record, ops.convert_to_tensor(ancestors), ops.convert_to_tensor(real)
    )
    assert [len(found[name]) for name in ("decoder", "cross")] == [1, 2]
    cross = ops.convert_to_numpy(found["cross"][1])
    own = ops.convert_to_numpy(found["decoder"][0])
    assert cross.shape == (B, 2, H, T, S)
    assert own.shape == (B, 2, H, T, T)
    assert own.dtype == cross.dtype == "float32"
    for row, place, head, time in np.ndindex(B, 2, H, T):
        beam = ancestors[row, place, time]
        expected = 1000 * time + 100 * row + 10 * beam + head / 8
        seen = np.arange(T) + 10 * beam
        if not real[row, place, time]:
            expected, seen = 0, 0
        assert (cross[row, place, head, time] == expected).all()
        np.testing.assert_array_equal(own[row, place, head, time], seen)

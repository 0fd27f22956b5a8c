"""One-hot positions, and why positions may be added at all."""

import keras
import numpy as np
import pytest
from gradients import compiled
from keras import ops

from keras_tfm.layers import LearnedPositionalEncoding
from keras_tfm.layers import OneHotPositionalEncoding

B, T, E, F, LONGEST = 2, 3, 5, 11, 7
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")


def test_puts_the_code_of_each_position_beside_its_vector():
    result = OneHotPositionalEncoding(3)(np.array([[[5.0], [6.0]]]))
    np.testing.assert_array_equal(result, [[[5, 1, 0, 0], [6, 0, 1, 0]]])


@pytest.mark.parametrize("start", [0, 2, LONGEST - T])
def test_a_linear_map_of_it_adds_a_vector_for_each_position(start):
    dense = keras.layers.Dense(F)
    beside = dense(OneHotPositionalEncoding(LONGEST)(X, start_index=start))
    kernel, bias = dense.get_weights()
    # W [x; onehot(p)] = W1 x + P[p]: the rows of W below E are the table P.
    added = LearnedPositionalEncoding(LONGEST)
    added.build((B, T, F))
    added.set_weights([kernel[E:]])
    mapped = (X @ kernel[:E] + bias).astype("float32")
    np.testing.assert_allclose(
        beside, added(mapped, start_index=start), atol=1e-5
    )


def test_positions_of_their_own_for_packed_rows():
    positions = np.array([[0, 1, 0], [6, 2, 2]])
    layer = OneHotPositionalEncoding(LONGEST)
    result = ops.convert_to_numpy(layer(X, positions=positions))
    np.testing.assert_array_equal(result[..., :E], X)
    np.testing.assert_array_equal(result[..., E:], np.eye(LONGEST)[positions])
    symbolic = layer(
        keras.Input((T, E)), positions=keras.Input((T,), dtype="int32")
    )
    assert symbolic.shape == (None, T, E + LONGEST)


def test_one_row_of_positions_serves_the_whole_batch():
    layer = OneHotPositionalEncoding(LONGEST)
    result = ops.convert_to_numpy(layer(X, positions=np.array([4, 0, 1])))
    for row in range(B):
        np.testing.assert_array_equal(
            result[row, :, E:], np.eye(LONGEST)[[4, 0, 1]]
        )


@pytest.mark.parametrize(
    "call", [{"start_index": LONGEST}, {"positions": np.array([0, 1, 9])}]
)
def test_a_position_beyond_the_code_is_an_error(call):
    layer = OneHotPositionalEncoding(LONGEST, name="places")
    with pytest.raises(ValueError, match="`places` knows positions 0 to 6"):
        layer(X, **call)


def test_a_length_beyond_the_code_is_an_error_in_a_compiled_function_too():
    layer = OneHotPositionalEncoding(LONGEST)
    layer(X)
    with pytest.raises(ValueError, match=f"Received position {LONGEST}"):
        compiled(layer)(ops.zeros((B, LONGEST + 1, E)))


def test_a_nonsense_size_is_an_error():
    with pytest.raises(ValueError, match="Received: max_sequence_length=-1"):
        OneHotPositionalEncoding(-1)

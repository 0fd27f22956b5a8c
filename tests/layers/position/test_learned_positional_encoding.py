"""A trained vector for each position, and nothing beyond the last."""

import keras
import numpy as np
import pytest
from gradients import compiled
from gradients import raw_tensorflow_gradients
from gradients import weight_gradients
from keras import ops

from keras_tfm.layers import LearnedPositionalEncoding

B, T, E, LONGEST = 2, 3, 5, 7
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")


def table_of(layer):
    return ops.convert_to_numpy(layer.embeddings)


def test_adds_the_row_of_each_position():
    layer = LearnedPositionalEncoding(2)
    layer.build((1, 2, 2))
    layer.set_weights([np.array([[10.0, 20.0], [30.0, 40.0]])])
    np.testing.assert_array_equal(
        layer(np.array([[[1.0, 2.0], [3.0, 4.0]]])), [[[11, 22], [33, 44]]]
    )


@pytest.mark.parametrize("start", [0, 1, LONGEST - T])
def test_a_start_index_shifts_the_positions(start):
    layer = LearnedPositionalEncoding(LONGEST)
    result = ops.convert_to_numpy(layer(X, start_index=start))
    np.testing.assert_allclose(
        result, X + table_of(layer)[start : start + T], atol=1e-6
    )


def test_positions_of_their_own_for_packed_rows():
    layer = LearnedPositionalEncoding(LONGEST)
    positions = np.array([[0, 1, 0], [6, 2, 2]])
    result = layer(X, positions=positions)
    np.testing.assert_allclose(
        result, X + table_of(layer)[positions], atol=1e-6
    )
    symbolic = layer(
        keras.Input((T, E)), positions=keras.Input((T,), dtype="int32")
    )
    assert symbolic.shape == (None, T, E)


@pytest.mark.parametrize(
    ("call", "largest"),
    [
        ({"start_index": LONGEST - T + 1}, LONGEST),
        ({"positions": np.array([0, 1, 11])}, 11),
        ({"positions": np.array([[0, 1, 2], [0, 1, 8]])}, 8),
    ],
)
def test_a_position_beyond_the_table_is_an_error(call, largest):
    layer = LearnedPositionalEncoding(LONGEST, name="places")
    with pytest.raises(ValueError, match="`places` knows positions") as error:
        layer(X, **call)
    assert f"0 to {LONGEST - 1}. Received position {largest}" in str(
        error.value
    )
    assert "larger `max_sequence_length`" in str(error.value)


def test_a_length_beyond_the_table_is_an_error_in_a_compiled_function_too():
    layer = LearnedPositionalEncoding(LONGEST)
    layer.build((B, LONGEST, E))
    with pytest.raises(ValueError, match=f"Received position {LONGEST + 3}"):
        compiled(layer)(ops.zeros((B, LONGEST + 4, E)))


def test_the_optimizer_gets_a_dense_gradient():
    layer = LearnedPositionalEncoding(LONGEST)
    layer.build(X.shape)
    (gradient,) = weight_gradients(layer, ops.sum, X).values()
    expected = np.zeros((LONGEST, E))
    expected[:T] = B
    np.testing.assert_array_equal(gradient, expected)
    if keras.backend.backend() == "tensorflow":
        (raw,) = raw_tensorflow_gradients(layer, ops.sum, X)
        assert not hasattr(raw, "indices")


def test_a_nonsense_size_is_an_error():
    with pytest.raises(ValueError, match="Received: max_sequence_length=0"):
        LearnedPositionalEncoding(0)

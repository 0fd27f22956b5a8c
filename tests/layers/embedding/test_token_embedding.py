"""Looking up vectors, scoring tokens, and the gradient of the shared table."""

import keras
import numpy as np
import pytest
from gradients import compiled
from gradients import raw_tensorflow_gradients
from gradients import weight_gradients
from keras import ops

from keras_tfm.layers import TokenEmbedding

B, T, E, V = 2, 5, 3, 7
IDS = np.array([[1, 4, 4, 0, 2], [6, 4, 1, 1, 0]], "int32")


def table_of(layer):
    return ops.convert_to_numpy(layer.embeddings)


def test_a_scaled_row_for_each_id_by_hand():
    layer = TokenEmbedding(3, 4)
    layer.build()
    layer.set_weights([np.arange(12.0).reshape(3, 4)])
    # The square root of 4 is 2.
    np.testing.assert_array_equal(
        layer(np.array([[2, 0]])), [[[16, 18, 20, 22], [0, 2, 4, 6]]]
    )


def test_without_scale_the_rows_are_as_they_are():
    layer = TokenEmbedding(V, E, scale=False)
    np.testing.assert_array_equal(layer(IDS), table_of(layer)[IDS])


def test_reverse_gives_the_product_with_every_row():
    layer = TokenEmbedding(V, E)
    layer.build()
    vectors = np.random.default_rng(0).normal(size=(B, T, E))
    logits = layer(vectors.astype("float32"), reverse=True)
    np.testing.assert_allclose(
        logits, np.einsum("bte,ve->btv", vectors, table_of(layer)), atol=1e-6
    )
    assert len(layer.weights) == 1


def test_reverse_has_the_symbolic_shape_of_the_logits():
    layer = TokenEmbedding(V, E)
    assert layer(keras.Input((None, E)), reverse=True).shape == (None, None, V)
    assert layer.compute_output_shape((B, T, E), reverse=True) == (B, T, V)


def test_a_tied_model_trains_one_table_from_both_ends():
    layer = TokenEmbedding(V, E)
    layer.build()

    class Tied(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = layer

        def call(self, ids):
            return self.embedding(self.embedding(ids), reverse=True)

    model = Tied()
    model(IDS)
    (gradient,) = weight_gradients(model, ops.sum, IDS).values()
    # Logits are s · t[i] · t[j], summed over the ids i and all tokens j.
    table, scale = table_of(layer), np.sqrt(E)
    counts = np.bincount(IDS.ravel(), minlength=V)[:, None]
    expected = scale * (counts * table.sum(0) + (counts * table).sum(0))
    np.testing.assert_allclose(gradient, expected, atol=1e-4)


def test_the_gradient_of_a_repeated_token_is_one_sum():
    layer = TokenEmbedding(V, E)
    layer.build()
    factors = np.random.default_rng(1).normal(size=(B, T, E)).astype("float32")
    (gradient,) = weight_gradients(
        layer, lambda vectors: ops.sum(vectors * factors), IDS
    ).values()
    expected = np.zeros((V, E))
    for row in range(B):
        for t in range(T):
            expected[IDS[row, t]] += np.sqrt(E) * factors[row, t]
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


@pytest.mark.parametrize("scale", [True, False])
def test_the_optimizer_gets_a_dense_gradient(scale):
    layer = TokenEmbedding(V, E, scale=scale)
    layer.build()
    if keras.backend.backend() == "jax":  # Every gradient of JAX is dense.
        gradients = list(weight_gradients(layer, ops.sum, IDS).values())
    else:
        gradients = raw_tensorflow_gradients(layer, ops.sum, IDS)
    assert hasattr(gradients[0], "shape")
    assert not hasattr(gradients[0], "indices")


@pytest.mark.parametrize(
    ("ids", "received"),
    [([[1, V]], f"from 1 to {V}"), ([[-1, 2]], "from -1 to 2")],
)
def test_ids_out_of_range_are_an_error(ids, received):
    layer = TokenEmbedding(V, E, name="tokens")
    with pytest.raises(ValueError, match=r"`tokens` takes token ids") as error:
        layer(np.array(ids))
    assert f"from 0 to {V - 1}. Received ids {received}" in str(error.value)
    assert "same vocabulary" in str(error.value)


@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_ids_that_are_no_integers_are_an_error(dtype):
    layer = TokenEmbedding(V, E)
    with pytest.raises(TypeError, match="takes integer token ids") as error:
        layer(np.ones((B, T), dtype))
    assert f"Received dtype {dtype}" in str(error.value)
    assert 'dtype="int32"' in str(error.value)


def test_a_float_input_of_a_model_is_an_error():
    # `keras.Input` makes floats where nobody says otherwise.
    layer = TokenEmbedding(V, E)
    layer.build()
    with pytest.raises(TypeError, match="takes integer token ids"):
        layer(keras.Input((T,)))
    with pytest.raises(TypeError, match="takes integer token ids"):
        compiled(layer)(ops.ones((B, T)))


def test_large_ids_are_exact_in_16_bits():
    layer = TokenEmbedding(5000, 2, scale=False, dtype="mixed_float16")
    layer.build()
    layer.set_weights([np.arange(10000.0).reshape(5000, 2) % 1999])
    ids = np.array([[2049, 4097]])
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(ids)), table_of(layer)[ids]
    )


@pytest.mark.parametrize("pad_id", [0, 3])
def test_the_mask_marks_what_is_not_padding(pad_id):
    vectors = TokenEmbedding(V, E, pad_id=pad_id)(IDS)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(vectors._keras_mask), pad_id != IDS
    )


def test_without_a_pad_id_there_is_no_mask():
    vectors = TokenEmbedding(V, E, pad_id=None)(IDS)
    assert getattr(vectors, "_keras_mask", None) is None


def test_the_default_rows_have_length_1_on_average():
    # N(0, 1 / d) for d channels, before the scale.
    layer = TokenEmbedding(1009, 64)
    layer.build()
    assert abs(table_of(layer).std() * 8 - 1) < 0.02


def test_a_nonsense_size_is_an_error():
    with pytest.raises(ValueError, match="Received: vocabulary_size=0"):
        TokenEmbedding(0, E)
    with pytest.raises(ValueError, match=r"Received: hidden_dim=2\.5"):
        TokenEmbedding(V, 2.5)

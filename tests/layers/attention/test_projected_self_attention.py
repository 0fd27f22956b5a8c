"""What self-attentions share: positions within them, and shared heads."""

import keras
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import AlibiBias
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import PositionalEncoding
from keras_tfm.layers import RelativePositionBias
from keras_tfm.layers import RotaryEmbedding

# D is even, for rotary positions; G heads of keys and values.
B, T, H, G, D, DV = 2, 11, 6, 2, 10, 7
E = 13

rng = np.random.default_rng(1)
X = rng.normal(size=(B, T, E)).astype("float32")

POSITIONS = {
    "rotary": RotaryEmbedding,
    "halves": lambda: RotaryEmbedding(rotary_dim=6, pairing="halves"),
    "alibi": lambda: AlibiBias(H),
    "buckets": lambda: RelativePositionBias(
        H, 8, 7, embeddings_initializer="random_normal"
    ),
}
each_position = pytest.mark.parametrize("position", POSITIONS)


def make(position=None, seed=0, **kwargs):
    if isinstance(position, str):
        position = POSITIONS[position]()
    kwargs = {"key_dim": D, "value_dim": DV, **kwargs}
    layer = MultiHeadSelfAttention(H, position=position, **kwargs)
    layer.build((B, T, E))
    randomise(layer, seed)
    return layer


def array(tensor):
    return ops.convert_to_numpy(tensor)


@each_position
def test_what_is_far_away_is_told_apart(position):
    layer, without = make(position), make()
    one = array(layer(X))[:, -1]
    # All keys but the query's own change their places.
    turned = np.concatenate([X[:, -2::-1], X[:, -1:]], axis=1)
    other = array(layer(turned))[:, -1]
    assert np.abs(one - other).max() > 1e-2
    np.testing.assert_allclose(
        array(without(X))[:, -1], array(without(turned))[:, -1], atol=1e-5
    )


@each_position
@settings(max_examples=3, deadline=None)
@given(st.integers(1, T - 2))
def test_only_distances_count(position, shift):
    # What stands further on among others of its kind looks the same.
    layer = make(position)
    padding = np.ones((B, T), bool)
    padding[:, :shift] = False
    later = array(layer(X, padding_mask=padding))[:, shift:]
    np.testing.assert_allclose(later, array(layer(X[:, shift:])), atol=1e-4)


@each_position
def test_scores_do_not_change_the_output(position):
    layer = make(position)
    output, weights = layer(X, return_attention_scores=True)
    np.testing.assert_array_equal(array(output), array(layer(X)))
    np.testing.assert_allclose(array(weights).sum(-1), 1.0, atol=1e-5)


def test_a_bias_of_the_caller_is_added_to_that_of_the_positions():
    layer = make("alibi")
    bias = rng.normal(size=(B, H, T, T)).astype("float32")
    both = layer(X, position_bias=bias)
    distances = np.arange(T)[None] - np.arange(T)[:, None]
    own = array(AlibiBias(H).scores(distances))
    without = make()
    without.set_weights(layer.get_weights())
    expected = without(X, position_bias=bias + own)
    np.testing.assert_allclose(array(both), array(expected), atol=1e-5)


def test_heads_that_share_keys_are_those_of_torch():
    layer = make(num_key_value_heads=G)
    projected = X @ array(layer.query_key_value.kernel)
    projected = projected + array(layer.query_key_value.bias)
    query, key, value = np.split(projected, [H * D, H * D + G * D], axis=-1)

    def heads(part, number):
        part = part.reshape(B, T, number, -1).transpose(0, 2, 1, 3)
        return torch.tensor(part)

    expected = torch.nn.functional.scaled_dot_product_attention(
        heads(query, H),
        heads(key, G),
        heads(value, G),
        is_causal=True,
        enable_gqa=True,
    )
    expected = expected.numpy().transpose(0, 2, 1, 3).reshape(B, T, -1)
    expected = expected @ array(layer.attention_output.kernel)
    expected = expected + array(layer.attention_output.bias)
    found = layer(X, use_causal_mask=True)
    np.testing.assert_allclose(array(found), expected, atol=1e-5)


def test_shared_heads_take_less_cache_and_fewer_weights():
    whole, shared = make(), make(num_key_value_heads=G)
    for own, all_heads in zip(
        shared.initial_cache(B, T), whole.initial_cache(B, T), strict=True
    ):
        assert own.shape[1] == G
        assert all_heads.shape[1] == H
    fewer = (H - G) * (D + DV) * (E + 1)
    assert shared.count_params() == whole.count_params() - fewer


def test_one_object_in_two_layers_is_one_set_of_weights():
    position = RelativePositionBias(H, 8, 7)
    first, second = make(position), make(position)
    tables = [
        weight
        for layer in (first, second)
        for weight in layer.trainable_weights
        if "embeddings" in weight.path
    ]
    assert len(tables) == 2
    assert tables[0] is tables[1]


@each_position
def test_the_config_rebuilds_the_position(position):
    layer = make(position, num_key_value_heads=G)
    restored = MultiHeadSelfAttention.from_config(layer.get_config())
    restored.build((B, T, E))
    restored.set_weights(layer.get_weights())
    assert type(restored.position) is type(layer.position)
    assert restored.position is not layer.position
    np.testing.assert_allclose(array(restored(X)), array(layer(X)), atol=1e-6)


def test_a_position_reloads_within_a_model(tmp_path):
    inputs = keras.Input((None, E))
    layer = make("buckets", num_key_value_heads=G)
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(restored(X)), array(model(X)), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"position": PositionalEncoding()},
            TypeError,
            "such as `RotaryEmbedding`.*PositionalEncoding.*before the atten",
        ),
        (
            {"position": AlibiBias(H + 1, name="slopes")},
            ValueError,
            "`slopes` was made for 7 heads.*attention of 6.*num_heads=6",
        ),
        (
            {"num_key_value_heads": 4},
            ValueError,
            "`num_heads` must be divisible by `num_key_value_heads`",
        ),
        ({"num_key_value_heads": 0}, ValueError, "`num_key_value_heads`"),
    ],
)
def test_a_wrong_argument_is_named(options, error, message):
    with pytest.raises(error, match=message):
        MultiHeadSelfAttention(H, **options)

"""What both multi-head attentions have in common: arguments and dropout."""

import keras
import numpy as np
import pytest
from gradients import weight_gradients
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers.attention import projected_attention
from keras_tfm.ops.blockwise_attention import blockwise_attention

B, T, H, D = 2, 5, 3, 7
E = H * D
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")

both = pytest.mark.parametrize(
    ("cls", "count"), [(MultiHeadSelfAttention, 1), (MultiHeadAttention, 2)]
)


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 0}, "Received: num_heads=0"),
        ({"num_heads": 2.0}, r"Received: num_heads=2\.0"),
        ({"key_dim": 0}, "Received: key_dim=0"),
        ({"key_dim": -1}, "Received: key_dim=-1"),
        ({"value_dim": 0}, "Received: value_dim=0"),
        ({"dropout": 1}, "Received: dropout=1"),
        ({"dropout": -0.1}, r"Received: dropout=-0\.1"),
        ({"blockwise_from": -1}, "Received: blockwise_from=-1"),
        ({"blockwise_from": 2.5}, r"Received: blockwise_from=2\.5"),
    ],
)
def test_a_nonsense_argument_is_an_error(cls, count, options, message):
    with pytest.raises(ValueError, match=message):
        cls(**{"num_heads": H, **options})


@both
def test_a_width_that_does_not_divide_is_an_error(cls, count):
    layer = cls(8)
    message = "`hidden_dim` must be divisible by `num_heads`"
    with pytest.raises(ValueError, match=message) as error:
        layer.build(*[(B, T, 100)] * count)
    assert "hidden_dim=100, num_heads=8. Try hidden_dim=96" in str(error.value)


@both
def test_a_given_head_size_frees_the_width(cls, count):
    layer = cls(8, key_dim=2)
    assert tuple(layer(*[X[..., :13]] * count).shape) == (B, T, 13)


@both
def test_dropout_scales_what_it_leaves(cls, count):
    # Values of 1 make the output the sum of the weights that are left.
    layer = cls(1, key_dim=1, dropout=0.5, use_bias=False)
    layer.build(*[(1, 40, 1)] * count)
    query_key_value = np.array([[0.0, 0.0, 1.0]])
    kernels = np.split(query_key_value, 1 if count == 1 else 3, axis=1)
    layer.set_weights([*kernels, np.ones((1, 1))])
    ones = np.ones((1, 40, 1), "float32")
    output, weights = layer(
        *[ones] * count, training=True, return_attention_scores=True
    )
    output = ops.convert_to_numpy(output).ravel()
    # A sum of k doubled weights of 1 / 40 each.
    np.testing.assert_allclose(output * 20, np.round(output * 20), atol=1e-4)
    assert output.std() > 0.0
    np.testing.assert_allclose(weights, 1 / 40, atol=1e-6)


@both
def test_scores_are_float32_under_every_policy(cls, count):
    layer = cls(H, dtype="mixed_bfloat16")
    _, weights = layer(*[X] * count, return_attention_scores=True)
    np.testing.assert_allclose(
        ops.convert_to_numpy(weights).sum(-1), 1.0, atol=1e-6
    )


@both
def test_masks_of_none_are_no_masks(cls, count):
    layer = cls(H)
    plain = ops.convert_to_numpy(layer(*[X] * count))
    everything = layer(
        *[X] * count,
        padding_mask=np.ones((B, T), bool),
        attention_mask=np.ones((T, T), bool),
    )
    nothing = layer(*[X] * count, padding_mask=None, attention_mask=None)
    np.testing.assert_array_equal(ops.convert_to_numpy(nothing), plain)
    np.testing.assert_allclose(everything, plain, atol=1e-6)


def twins(cls, count, **options):
    """Return one layer in tiles and one that is dense, of equal weights."""
    layers = []
    for blockwise_from in (0, None):
        layer = cls(H, blockwise_from=blockwise_from, **options)
        layer.build(*[(B, T, E)] * count)
        layers.append(layer)
    randomise(layers[0])
    layers[1].set_weights(layers[0].get_weights())
    return layers


MASKS = [
    {},
    {"use_causal_mask": True},
    {
        "padding_mask": np.arange(T) < np.array([[T], [2]]),
        "attention_mask": np.random.default_rng(1).random((B, T, T)) < 0.6,
        "position_bias": np.random.default_rng(2)
        .normal(size=(1, H, T, T))
        .astype("float32"),
        "use_causal_mask": True,
    },
]


@both
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("training", [False, True])
def test_in_tiles_it_says_and_learns_the_same(cls, count, masks, training):
    # In training they drop the same weights, too: their seeds are the same.
    in_tiles, dense = twins(cls, count, dropout=0.3)
    inputs = [0.3 * X] * count
    in_tiles.drop.seed_generator.state.assign(
        dense.drop.seed_generator.state.value
    )
    found, expected = (
        weight_gradients(
            layer,
            lambda y: ops.sum(ops.sin(y)),
            *inputs,
            training=training,
            **masks,
        )
        for layer in (in_tiles, dense)
    )
    for one, other in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    states = [
        layer.drop.seed_generator.state.value for layer in (in_tiles, dense)
    ]
    in_tiles.drop.seed_generator.state.assign(states[1])
    outputs = [
        ops.convert_to_numpy(layer(*inputs, training=training, **masks))
        for layer in (in_tiles, dense)
    ]
    np.testing.assert_allclose(*outputs, atol=1e-5)
    undropped = ops.convert_to_numpy(dense(*inputs, **masks))
    assert training == bool(abs(outputs[1] - undropped).max() > 1e-3)


@both
def test_tiles_are_taken_where_it_is_long_enough(cls, count, monkeypatch):
    lengths = []

    def spy(query, key, *args, **kwargs):
        lengths.append((query.shape[2], key.shape[2]))
        return blockwise_attention(query, key, *args, **kwargs)

    monkeypatch.setattr(projected_attention, "blockwise_attention", spy)
    layer = cls(H, blockwise_from=T)
    layer(*[X[:, : T - 1]] * count)
    assert not lengths
    layer(*[X] * count)
    assert lengths == [(T, T)]
    # There are no weights to return from tiles.
    layer(*[X] * count, return_attention_scores=True)
    layer.blockwise_from = None
    layer(*[X] * count)
    assert lengths == [(T, T)]
    # A length that is not known yet counts as short.
    layer.blockwise_from = T
    layer(*[keras.Input((None, E))] * count)
    assert lengths == [(T, T)]


def test_the_root_of_both_lengths_counts(monkeypatch):
    calls = []

    def spy(*args, **kwargs):
        calls.append(1)
        return blockwise_attention(*args, **kwargs)

    monkeypatch.setattr(projected_attention, "blockwise_attention", spy)
    layer = MultiHeadAttention(H, blockwise_from=3)
    layer(X[:, :2], X[:, :4])
    assert not calls
    layer(X[:, :2], X)
    assert calls == [1]


@both
def test_the_length_comes_back_from_the_config(cls, count):
    for blockwise_from in (0, None, 17):
        config = cls(H, blockwise_from=blockwise_from).get_config()
        assert cls.from_config(config).blockwise_from == blockwise_from
    assert cls(H).blockwise_from == projected_attention.BLOCKWISE_FROM

"""Parts of a block: made from sizes, or handed over ready-made."""

import keras
import numpy as np
import pytest
from layer_checks import inner_layers

from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import FeedForward
from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention

B, T, S, H, E, F = 2, 5, 7, 3, 6, 11
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")
CONTEXT = np.random.default_rng(1).normal(size=(B, S, E)).astype("float32")

both = pytest.mark.parametrize("cls", [EncoderBlock, DecoderBlock])


@both
def test_sizes_make_the_parts(cls):
    block = cls(
        H,
        F,
        activation="gelu",
        dropout=0.1,
        attention_dropout=0.2,
        activation_dropout=0.3,
        layer_norm_epsilon=1e-5,
        use_bias=False,
    )
    attention = block.self_attention.sublayer
    assert isinstance(attention, MultiHeadSelfAttention)
    assert attention.num_heads == H
    assert attention.dropout == 0.2
    assert not attention.use_bias
    network = block.feed_forward.sublayer
    assert isinstance(network, FeedForward)
    assert network.intermediate_dim == F
    assert network.activation is keras.activations.gelu
    assert network.dropout == 0.3
    for part in (block.self_attention, block.feed_forward):
        assert part.dropout == 0.1
        assert part.normalize_first
        assert part.layer_norm_epsilon == 1e-5


@both
def test_ready_made_parts_are_used_as_they_are(cls):
    attention = MultiHeadSelfAttention(1, key_dim=4)
    network = FeedForward(F)
    block = cls(attention=attention, feed_forward=network)
    block(X)
    assert block.self_attention.sublayer is attention
    assert block.feed_forward.sublayer is network


@both
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either `num_heads` or a ready-made `attention`"),
        (
            {"num_heads": H, "attention": "one", "intermediate_dim": F},
            r"Received: num_heads=3, attention='one'",
        ),
        ({"num_heads": H}, "`intermediate_dim` or a ready-made `feed_forward`"),
        (
            {"num_heads": H, "intermediate_dim": F, "feed_forward": "two"},
            r"Received: intermediate_dim=11, feed_forward='two'",
        ),
    ],
)
def test_neither_or_both_of_a_part_and_its_size_is_an_error(
    cls, arguments, message
):
    with pytest.raises(ValueError, match=message):
        cls(**arguments)


@both
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 0}, "Received: num_heads=0"),
        ({"intermediate_dim": 0}, "Received: intermediate_dim=0"),
        ({"dropout": 1.0}, "Received: dropout=1"),
        ({"attention_dropout": -1}, "Received: dropout=-1"),
        ({"activation_dropout": 2}, "Received: dropout=2"),
        ({"layer_norm_epsilon": 0}, "Received: layer_norm_epsilon=0"),
        ({"activation": "swash"}, "swash"),
    ],
)
def test_a_nonsense_argument_is_an_error_at_once(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**{"num_heads": H, "intermediate_dim": F, **arguments})


@both
def test_a_width_that_the_heads_do_not_divide_is_an_error(cls):
    with pytest.raises(ValueError, match="Try hidden_dim=126"):
        cls(H, F).build((B, T, 128))


@both
@pytest.mark.parametrize("normalize_first", [True, False])
def test_the_epsilon_reaches_every_norm_and_there_is_one_for_each_part(
    cls, normalize_first
):
    block = cls(H, F, layer_norm_epsilon=1e-12, normalize_first=normalize_first)
    inputs = (X,) if cls is EncoderBlock else (X, CONTEXT)
    block(*inputs)
    norms = [
        layer
        for layer in inner_layers(block)
        if isinstance(layer, keras.layers.LayerNormalization)
    ]
    assert [norm.epsilon for norm in norms] == [1e-12] * (1 + len(inputs))


def test_a_cross_attention_beside_heads_is_an_error():
    message = "either `num_heads` or a ready-made `cross_attention`"
    with pytest.raises(ValueError, match=message):
        DecoderBlock(H, F, cross_attention=MultiHeadAttention(H))


def test_ready_made_parts_of_a_decoder_reload_with_their_config():
    block = DecoderBlock(
        attention=MultiHeadSelfAttention(H, key_dim=5),
        cross_attention=MultiHeadAttention(1, key_dim=4),
        feed_forward=FeedForward(F),
    )
    expected = block(X, CONTEXT)
    restored = DecoderBlock.from_config(block.get_config())
    restored.build(X.shape, CONTEXT.shape)
    restored.set_weights(block.get_weights())
    assert restored.cross_attention.sublayer.key_dim == 4
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(restored(X, CONTEXT)),
        keras.ops.convert_to_numpy(expected),
    )

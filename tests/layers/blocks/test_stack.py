"""Stacks: how many blocks, which norm ends them, and shared blocks."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_checks import inner_layers
from layer_checks import randomise

from keras_tfm.layers import Decoder
from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import Encoder
from keras_tfm.layers import EncoderBlock

B, T, H, E, F, LAYERS = 2, 5, 3, 6, 11, 4
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")

both = pytest.mark.parametrize(
    ("cls", "block"), [(Encoder, EncoderBlock), (Decoder, DecoderBlock)]
)


def count_norms(layer):
    return sum(
        isinstance(inner, keras.layers.LayerNormalization)
        for inner in inner_layers(layer)
    )


@both
def test_pre_norm_ends_with_a_norm_and_post_norm_does_not(cls, block):
    for normalize_first, extra in ((True, 1), (False, 0)):
        stack = cls(LAYERS, H, F, normalize_first=normalize_first)
        stack(X)
        assert count_norms(stack) == 2 * LAYERS + extra
        last = ops.convert_to_numpy(stack(X))
        # The last of all is a norm with its first weights, 1 and 0.
        np.testing.assert_allclose(last.mean(-1), 0.0, atol=1e-5)
        np.testing.assert_allclose(last.std(-1), 1.0, atol=1e-3)


@both
def test_is_its_blocks_one_after_another(cls, block):
    stack = cls(LAYERS, H, F)
    stack.build((B, T, E))
    randomise(stack)
    x = X
    for one in stack.blocks:
        assert isinstance(one, block)
        x = one(x)
    np.testing.assert_allclose(stack(X), stack.norm(x), atol=1e-5)


@both
def test_the_other_arguments_reach_every_block(cls, block):
    stack = cls(
        LAYERS, H, F, activation="gelu", dropout=0.1, attention_dropout=0.2,
        activation_dropout=0.3, use_bias=False, layer_norm_epsilon=1e-5,
    )  # fmt: skip
    for one in stack.blocks:
        assert one.activation is keras.activations.gelu
        assert one.dropout == 0.1
        assert one.attention_dropout == 0.2
        assert one.activation_dropout == 0.3
        assert one.layer_norm_epsilon == 1e-5
        assert not one.use_bias


@both
def test_ready_made_blocks_are_used_as_they_are(cls, block):
    blocks = [block(H, F), block(1, F + 2)]
    stack = cls(blocks=blocks)
    stack(X)
    assert [id(one) for one in stack.blocks] == [id(one) for one in blocks]
    restored = cls.from_config(stack.get_config())
    restored.build(X.shape)
    restored.set_weights(stack.get_weights())
    np.testing.assert_array_equal(
        ops.convert_to_numpy(restored(X)), ops.convert_to_numpy(stack(X))
    )


@both
def test_the_same_block_twice_shares_its_weights_also_after_loading(
    cls, block, tmp_path
):
    first, second = block(H, F), block(H, F)
    inputs = keras.Input((None, E))
    stack = cls(blocks=[first, second, first])
    model = keras.Model(inputs, stack(inputs))
    randomise(model)
    assert len(stack.weights) == 2 * len(first.weights) + 2
    model.save(tmp_path / "shared.keras")
    restored = keras.saving.load_model(tmp_path / "shared.keras")
    assert len(restored.weights) == len(model.weights)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(restored(X)), ops.convert_to_numpy(model(X))
    )


@both
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": H}, "either `num_layers` or ready-made `blocks`"),
        ({"num_layers": 2, "blocks": []}, r"num_layers=2, blocks=\[\]"),
        ({"num_layers": 0}, "Received: num_layers=0"),
        ({"num_layers": 1, "num_heads": 0}, "Received: num_heads=0"),
        ({"num_layers": 1, "layer_norm_epsilon": -1}, "layer_norm_epsilon=-1"),
    ],
)
def test_a_nonsense_argument_is_an_error(cls, block, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**{"num_heads": H, "intermediate_dim": F, **arguments})

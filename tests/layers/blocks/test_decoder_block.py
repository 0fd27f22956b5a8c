"""A decoder block against NumPy, without a context, and step by step."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_checks import randomise
from numpy_reference import all_masks
from numpy_reference import layer_norm
from numpy_reference import multi_head_attention

from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import FeedForward
from keras_tfm.layers import MultiHeadSelfAttention

B, T, S, H, D, F, C = 2, 5, 7, 3, 11, 13, 17
E = H * D
rng = np.random.default_rng(0)
X = rng.normal(size=(B, T, E)).astype("float32")
CONTEXT = rng.normal(size=(B, S, C)).astype("float32")
SOURCE_PADDING = np.array([[True] * 4 + [False] * 3, [True] * S])


def make(context=True, **options):
    block = DecoderBlock(H, F, **options)
    block.build((B, T, E), *[(B, S, C)] * context)
    randomise(block)
    return block


def dense(layer, x):
    kernel, bias = layer.get_weights()
    return x @ kernel + bias


def by_numpy(block, x):
    """The block's formula, from its weights alone."""
    own = block.self_attention.sublayer
    cross = block.cross_attention.sublayer

    def attention(x):
        parts = np.split(dense(own.query_key_value, x), 3, axis=-1)
        mask = all_masks(B, H, T, T, causal=True)
        heads, _ = multi_head_attention(*parts, H, mask)
        return dense(own.attention_output, heads)

    def look_at_context(x):
        heads, _ = multi_head_attention(
            dense(cross.query, x),
            dense(cross.key, CONTEXT),
            dense(cross.value, CONTEXT),
            H,
            all_masks(B, H, T, S, padding=SOURCE_PADDING),
        )
        return dense(cross.attention_output, heads)

    def network(x):
        inner = block.feed_forward.sublayer
        return dense(inner.project, np.maximum(dense(inner.widen, x), 0.0))

    for residual, function in (
        (block.self_attention, attention),
        (block.cross_attention, look_at_context),
        (block.feed_forward, network),
    ):
        norm = residual.norm.get_weights()
        if block.normalize_first:
            x = x + function(layer_norm(x, *norm))
        else:
            x = layer_norm(x + function(x), *norm)
    return x


@pytest.mark.parametrize("pre_norm", [True, False])
def test_equals_the_formula_in_numpy(pre_norm):
    block = make(normalize_first=pre_norm)
    result = block(X, CONTEXT, context_padding_mask=SOURCE_PADDING)
    np.testing.assert_allclose(result, by_numpy(block, X), atol=1e-3)


def test_without_a_context_it_is_a_causal_encoder_block():
    block = make(context=False)
    encoder_block = EncoderBlock(H, F)
    encoder_block.build((B, T, E))
    encoder_block.set_weights(block.get_weights())
    np.testing.assert_array_equal(
        ops.convert_to_numpy(block(X)),
        ops.convert_to_numpy(encoder_block(X, use_causal_mask=True)),
    )


def test_a_context_of_none_may_be_written_out():
    block = make(context=False)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(block(X, None)), ops.convert_to_numpy(block(X))
    )
    assert DecoderBlock(H, F)(keras.Input((None, E)), None).shape[-1] == E


def test_the_causal_mask_can_be_taken_off():
    block = make(context=False)
    _, weights = block(X, use_causal_mask=False, return_attention_scores=True)
    assert (ops.convert_to_numpy(weights) > 0.0).all()
    _, weights = block(X, return_attention_scores=True)
    assert (np.triu(ops.convert_to_numpy(weights), 1) == 0.0).all()


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("chunks", [[1] * T, [3, 2], [T]])
@pytest.mark.parametrize("has_context", [True, False])
def test_steps_give_what_the_call_gives(pre_norm, chunks, has_context):
    block = make(has_context, normalize_first=pre_norm)
    context = (CONTEXT,) if has_context else ()
    padding = SOURCE_PADDING if has_context else None
    expected, *all_weights = block(
        X,
        *context,
        context_padding_mask=padding,
        return_attention_scores=True,
    )
    cache = block.initial_cache(B, T, *context, context_padding_mask=padding)
    index = 0
    for size in chunks:
        positions = slice(index, index + size)
        output, cache, *weights = block.step(
            X[:, positions],
            cache,
            index,
            padding,
            return_attention_scores=True,
        )
        np.testing.assert_allclose(
            output, ops.convert_to_numpy(expected)[:, positions], atol=1e-4
        )
        for ours, whole in zip(weights, all_weights, strict=True):
            np.testing.assert_allclose(
                ours, ops.convert_to_numpy(whole)[:, :, positions], atol=1e-5
            )
        index += size
    output, _ = block.step(X[:, -1:], cache, T - 1, padding)
    np.testing.assert_allclose(
        output, ops.convert_to_numpy(expected)[:, -1:], atol=1e-4
    )


def test_the_context_is_projected_once():
    block = make()
    cache = block.initial_cache(B, T, CONTEXT)
    _, after = block.step(X[:, :1], cache, 0)
    for before, now in zip(cache["cross"], after["cross"], strict=True):
        assert before is now


@pytest.mark.parametrize("first", [True, False])
def test_a_context_that_comes_or_goes_is_an_error(first):
    block = make(context=first, name="block")
    had, has = ("with", "without") if first else ("without", "with")
    inputs = (X,) if first else (X, CONTEXT)
    with pytest.raises(ValueError, match="`block` was first called") as error:
        block(*inputs)
    assert f"called {had} a context and is now called {has} one" in str(
        error.value
    )
    assert "a block of its own" in str(error.value)


def test_a_context_without_a_cross_attention_is_an_error():
    block = DecoderBlock(
        attention=MultiHeadSelfAttention(H), feed_forward=FeedForward(F)
    )
    with pytest.raises(ValueError, match="cannot attend to a context"):
        block(X, CONTEXT)


def test_the_parameters_are_counted_by_the_formula():
    own = 4 * E * E + 4 * E
    cross = 2 * (E * E + E) + 2 * (C * E + E)
    network = E * F + F + F * E + E
    assert make().count_params() == own + cross + network + 3 * 2 * E
    assert make(context=False).count_params() == own + network + 2 * 2 * E

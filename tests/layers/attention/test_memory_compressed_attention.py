"""MemoryCompressedAttention against a convolution and dense attention."""

import keras
import numpy as np
import pytest
from backend_functions import swift
from keras import ops
from layer_checks import randomise
from numpy_reference import multi_head_attention
from step_checks import check_beams
from step_checks import check_steps

from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import FeedForward
from keras_tfm.layers import MemoryCompressedAttention
from keras_tfm.layers import RotaryEmbedding

B, T, H, D, DV, E = 2, 17, 3, 10, 7, 13

rng = np.random.default_rng(1)
X = rng.normal(size=(B, T, E)).astype("float32")
each_factor = pytest.mark.parametrize("factor", [1, 3, 5])


def make(factor=3, **kwargs):
    kwargs = {"key_dim": D, "value_dim": DV, **kwargs}
    layer = MemoryCompressedAttention(H, factor, **kwargs)
    layer.build((B, T, E))
    randomise(layer)
    return layer


def array(tensor):
    return ops.convert_to_numpy(tensor)


def convolved(sequence, dense, factor, causal):
    """Convolve with Keras's own layer of the same weights."""
    if causal:
        slots = -(-sequence.shape[1] // factor)
        sequence = sequence[:, : (slots - 1) * factor + 1]
        sequence = np.pad(sequence, ((0, 0), (factor - 1, 0), (0, 0)))
    else:
        missing = -sequence.shape[1] % factor
        sequence = np.pad(sequence, ((0, 0), (0, missing), (0, 0)))
    channels = dense.kernel.shape[-1]
    convolution = keras.layers.Conv1D(channels, factor, strides=factor)
    convolution.build(sequence.shape)
    kernel = array(dense.kernel).reshape(factor, channels, channels)
    convolution.set_weights([kernel, array(dense.bias)])
    return array(convolution(sequence))


def by_convolution(layer, x, factor, causal, padding):
    x = np.where(padding[..., None], x, 0.0)
    projected = x @ array(layer.query_key_value.kernel)
    projected = projected + array(layer.query_key_value.bias)
    query, key, value = np.split(projected, [H * D, 2 * H * D], axis=-1)
    key, value = (
        np.where(padding[..., None], part, 0.0) for part in (key, value)
    )
    key = convolved(key, layer.key_compression, factor, causal)
    value = convolved(value, layer.value_compression, factor, causal)
    length, slots = x.shape[1], key.shape[1]
    allowed = np.ones((B, H, length, slots), bool)
    for slot in range(slots):
        first = slot * factor - (factor - 1 if causal else 0)
        inside = [p for p in range(first, first + factor) if 0 <= p < length]
        allowed[..., slot] &= padding[:, inside].any(1)[:, None, None]
        if causal:
            allowed[:, :, : slot * factor, slot] = False
    output, weights = multi_head_attention(query, key, value, H, allowed)
    output = output @ array(layer.attention_output.kernel)
    return output + array(layer.attention_output.bias), weights


@each_factor
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [1, 3, 7, 16, T])
def test_it_is_attention_to_a_strided_convolution(factor, causal, length):
    layer, x = make(factor), X[:, :length]
    padding = np.arange(length) < np.array([length, 5])[:, None]
    output, weights = swift(
        lambda x: layer(
            x,
            padding_mask=padding,
            use_causal_mask=causal,
            return_attention_scores=True,
        )
    )(x)
    expected, expected_weights = by_convolution(
        layer, x, factor, causal, padding
    )
    np.testing.assert_allclose(
        array(output)[padding], expected[padding], atol=2e-5
    )
    by_query = np.moveaxis(array(weights), 1, 2)[padding]
    wanted = np.moveaxis(expected_weights, 1, 2)[padding]
    np.testing.assert_allclose(by_query, wanted, atol=1e-5)


@each_factor
@pytest.mark.parametrize(
    ("chunks", "max_length"), [([1] * T, T + 6), ([9, 1, 7], T), ([T], T)]
)
def test_steps_give_what_the_causal_call_gives(factor, chunks, max_length):
    padding = np.ones((B, T), bool)
    padding[0, 2:5] = False
    layer = make(factor, position=RotaryEmbedding())
    check_steps(layer, X, chunks, max_length, padding)
    check_steps(layer, X, chunks, max_length)


@each_factor
@pytest.mark.parametrize("grow_at", [None, 4])
def test_each_beam_gets_what_its_own_sequence_gets(factor, grow_at):
    layer = make(factor, num_key_value_heads=1)
    check_beams(layer, E, length=8, grow_at=grow_at)


@each_factor
def test_the_future_changes_nothing(factor):
    layer = make(factor)
    call = swift(lambda x: layer(x, use_causal_mask=True))
    whole = array(call(X))
    for length in range(1, T):
        changed = X.copy()
        changed[:, length:] = 1e3
        part = array(call(changed))[:, :length]
        np.testing.assert_array_equal(part, whole[:, :length])


def test_the_memory_is_as_many_times_shorter():
    keys, values, latest = make(3).initial_cache(B, 300)
    assert keys.shape == (B, H, D, 100)
    assert values.shape == (B, H, 100, DV)
    assert latest.shape == (B, 2, H * (D + DV))


def test_a_mask_over_slots_is_one_more_mask():
    layer = make(3)
    mask = rng.random((T, 6)) < 0.6
    _, weights = layer(X, attention_mask=mask, return_attention_scores=True)
    hidden = np.broadcast_to(~mask, (B, H, T, 6))
    assert (array(weights)[hidden] == 0.0).all()
    with pytest.raises(ValueError, match="17 queries and 6 keys"):
        layer(X, attention_mask=np.ones((T, T), bool))


def test_it_is_a_part_of_a_decoder_block():
    block = DecoderBlock(attention=make(), feed_forward=FeedForward(19))
    expected = array(block(X))
    restored = DecoderBlock.from_config(block.get_config())
    restored.build((B, T, E))
    restored.set_weights(block.get_weights())
    np.testing.assert_allclose(array(restored(X)), expected, atol=1e-6)
    cache = block.initial_cache(B, T)
    for index in range(T):
        output, cache = block.step(X[:, index : index + 1], cache, index)
        np.testing.assert_allclose(output[:, 0], expected[:, index], atol=1e-4)


def test_a_wrong_factor_is_named():
    with pytest.raises(ValueError, match=r"`compression`.*compression=0"):
        MemoryCompressedAttention(H, 0)

"""Attention and blocks against Keras's and KerasHub's own."""

import keras
import keras_hub
import numpy as np
import pytest
from backend_functions import gradients

from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention

B, T, S, H, D, DV, E, C, F = 3, 5, 7, 2, 11, 13, 17, 19, 23


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def shake(layer):
    for number, weight in enumerate(layer.trainable_weights):
        centre = 1.0 if weight.path.endswith("gamma") else 0.0
        weight.assign(centre + 0.3 * random(*weight.shape, seed=number))
    return layer


def dense(ours, theirs):
    """Copy an `EinsumDense` into a `Dense`; return the pairs of variables."""
    width = ours.kernel.shape
    pairs = [(ours.kernel, theirs.kernel), (ours.bias, theirs.bias)]
    ours.kernel.assign(theirs.kernel.numpy().reshape(width))
    ours.bias.assign(theirs.bias.numpy().reshape(-1))
    return pairs


def attention(ours, theirs):
    return [
        *dense(ours.query, theirs.query_dense),
        *dense(ours.key, theirs.key_dense),
        *dense(ours.value, theirs.value_dense),
        *dense(ours.attention_output, theirs.output_dense),
    ]


def self_attention(ours, theirs):
    """Copy three projections into one."""
    parts = [theirs.query_dense, theirs.key_dense, theirs.value_dense]
    joined = ours.query_key_value
    rows = joined.kernel.shape[0]
    joined.kernel.assign(
        np.concatenate([p.kernel.numpy().reshape(rows, -1) for p in parts], 1)
    )
    joined.bias.assign(
        np.concatenate([p.bias.numpy().reshape(-1) for p in parts])
    )
    dense(ours.attention_output, theirs.output_dense)


def masks():
    padding = np.arange(S) < np.array([[7], [4], [1]])
    pairs = np.random.default_rng(5).random((B, T, S)) < 0.6
    pairs[:, :, 0] = True  # Every query has a key: there the two agree.
    return padding, pairs


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("paired", [True, False])
def test_attention_is_that_of_keras(padded, paired):
    theirs = keras.layers.MultiHeadAttention(H, D, DV)
    theirs.build((B, T, E), (B, S, C))
    shake(theirs)
    ours = MultiHeadAttention(H, D, DV)
    ours.build((B, T, E), (B, S, C))
    pairs = attention(ours, theirs)
    padding, allowed = masks()
    allowed = allowed if paired else None
    both = allowed
    if padded:
        both = padding[:, None] & (True if allowed is None else allowed)
        both = np.broadcast_to(both, (B, T, S))
    tensors = [random(B, T, E), random(B, S, C, seed=1)]
    probe = random(B, T, E, seed=2)

    def call_ours(query, value):
        return ours(
            query,
            value,
            padding_mask=padding if padded else None,
            attention_mask=allowed,
        )

    def call_theirs(query, value):
        # With scores: on JAX its other path takes no `value_dim`.
        return theirs(
            query, value, attention_mask=both, return_attention_scores=True
        )[0]

    np.testing.assert_allclose(
        call_ours(*tensors), call_theirs(*tensors), atol=1e-5
    )
    found, expected = (
        gradients(
            lambda *x, call=call: keras.ops.sum(call(*x) * probe),
            tensors,
            [pair[which] for pair in pairs],
        )
        for which, call in enumerate((call_ours, call_theirs))
    )
    found, expected = ([*x, *y] for x, y in (found, expected))
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            mine, other.reshape(mine.shape), atol=1e-5 * (1 + abs(other).max())
        )


@pytest.mark.parametrize("causal", [True, False])
def test_self_attention_is_that_of_keras(causal):
    theirs = keras.layers.MultiHeadAttention(H, D)
    theirs.build((B, T, E), (B, T, E))
    shake(theirs)
    ours = MultiHeadSelfAttention(H, D)
    ours.build((B, T, E))
    self_attention(ours, theirs)
    x = random(B, T, E)
    mine, my_scores = ours(
        x, use_causal_mask=causal, return_attention_scores=True
    )
    other, other_scores = theirs(
        x, x, use_causal_mask=causal, return_attention_scores=True
    )
    np.testing.assert_allclose(mine, other, atol=1e-5)
    np.testing.assert_allclose(my_scores, other_scores, atol=1e-5)


HUB = {"intermediate_dim": F, "num_heads": H, "layer_norm_epsilon": 1e-5}
WIDTH = H * D


def copied_block(ours, theirs, cross):
    self_attention(ours.self_attention.sublayer, theirs._self_attention_layer)
    norms = [(ours.self_attention, theirs._self_attention_layer_norm)]
    if cross:
        attention(ours.cross_attention.sublayer, theirs._cross_attention_layer)
        norms.append((ours.cross_attention, theirs._cross_attention_layer_norm))
    norms.append((ours.feed_forward, theirs._feedforward_layer_norm))
    for residual, norm in norms:
        residual.norm.set_weights(norm.get_weights())
    network = ours.feed_forward.sublayer
    dense(network.widen, theirs._feedforward_intermediate_dense)
    dense(network.project, theirs._feedforward_output_dense)


@pytest.mark.parametrize("normalize_first", [True, False])
def test_an_encoder_block_is_that_of_keras_hub(normalize_first):
    theirs = keras_hub.layers.TransformerEncoder(
        normalize_first=normalize_first, **HUB
    )
    x = random(B, S, WIDTH)
    padding, _ = masks()
    theirs(x)
    shake(theirs)
    ours = EncoderBlock(normalize_first=normalize_first, **HUB)
    ours.build(x.shape)
    copied_block(ours, theirs, cross=False)
    found = keras.ops.convert_to_numpy(ours(x, padding_mask=padding))
    expected = keras.ops.convert_to_numpy(theirs(x, padding_mask=padding))
    np.testing.assert_allclose(found[padding], expected[padding], atol=1e-5)


@pytest.mark.parametrize("normalize_first", [True, False])
def test_a_decoder_block_is_that_of_keras_hub(normalize_first):
    theirs = keras_hub.layers.TransformerDecoder(
        normalize_first=normalize_first, **HUB
    )
    x, context = random(B, T, WIDTH), random(B, S, WIDTH, seed=1)
    padding, _ = masks()
    target = np.arange(T) < np.array([[2], [5], [3]])
    theirs(x, context)
    shake(theirs)
    ours = DecoderBlock(normalize_first=normalize_first, **HUB)
    ours.build(x.shape, context.shape)
    copied_block(ours, theirs, cross=True)
    found = ours(x, context, padding_mask=target, context_padding_mask=padding)
    expected = theirs(
        x,
        context,
        decoder_padding_mask=target,
        encoder_padding_mask=padding,
    )
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found)[target],
        keras.ops.convert_to_numpy(expected)[target],
        atol=1e-5,
    )

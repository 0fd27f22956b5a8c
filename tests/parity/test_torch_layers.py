"""Attention, blocks and stacks against torch.nn: outputs and gradients."""

import keras
import numpy as np
import pytest
import torch
from backend_functions import gradients
from parity import torch_weights

from keras_tfm.layers import Decoder
from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import Encoder
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.ops.masks import from_torch_mask

# torch says that pre-norm has no fast path; we compare with the slow one.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

# Distinct: batch, target length, source length, heads, head size, width.
B, T, S, H, D, F = 3, 5, 7, 2, 11, 13
E = H * D
EPSILON = 1e-5
TOLERANCE = 1e-5

SOURCE_LENGTHS = np.array([7, 4, 1])
TARGET_LENGTHS = np.array([2, 5, 3])


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def real(lengths, size):
    return np.arange(size) < lengths[:, None]


SOURCE_REAL = real(SOURCE_LENGTHS, S)
TARGET_REAL = real(TARGET_LENGTHS, T)
TORCH_SOURCE = torch.tensor(~SOURCE_REAL)  # torch: True hides.
TORCH_TARGET = torch.tensor(~TARGET_REAL)
TORCH_CAUSAL = torch.ones(T, T, dtype=torch.bool).triu(1)


def compare(ours, theirs, layer, links, tensors, counted):
    """Compare outputs and all gradients of a weighted sum of the outputs.

    Args:
        ours: Function of Keras tensors.
        theirs: The same function of torch tensors.
        layer: Keras layer, built; its weights are copied from torch here.
        links: List of `Link`.
        tensors: List of arrays, the inputs.
        counted: Boolean array `(batch, length)`: outputs that count.
    """
    torch_weights.copy(links, layer)
    torch_tensors = [torch.tensor(x, requires_grad=True) for x in tensors]
    expected = theirs(*torch_tensors)
    probe = random(*expected.shape, seed=77) * counted[..., None]
    (expected * torch.tensor(probe)).sum().backward()

    found = keras.ops.convert_to_numpy(ours(*tensors))
    np.testing.assert_allclose(
        found[counted], expected.detach().numpy()[counted], atol=TOLERANCE
    )
    by_tensor, by_variable = gradients(
        lambda *x: keras.ops.sum(ours(*x) * probe),
        tensors,
        [link.variable for link in links],
    )
    for gradient, tensor in zip(by_tensor, torch_tensors, strict=True):
        close(gradient, tensor.grad.numpy(), "an input")
    for gradient, link in zip(by_variable, links, strict=True):
        close(gradient, link.gradient(), link.variable.path)


def close(found, expected, name):
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(
        found / scale, expected / scale, atol=TOLERANCE, err_msg=name
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_self_attention_is_that_of_torch(bias, causal, padded):
    module = torch_weights.shake(
        torch.nn.MultiheadAttention(E, H, bias=bias, batch_first=True)
    )
    layer = MultiHeadSelfAttention(H, use_bias=bias)
    layer.build((B, T, E))
    compare(
        lambda x: layer(
            x,
            padding_mask=TARGET_REAL if padded else None,
            use_causal_mask=causal,
        ),
        lambda x: module(
            x,
            x,
            x,
            key_padding_mask=TORCH_TARGET if padded else None,
            attn_mask=TORCH_CAUSAL if causal else None,
        )[0],
        layer,
        torch_weights.self_attention(layer, module),
        [random(B, T, E)],
        TARGET_REAL if padded else np.ones((B, T), bool),
    )


@pytest.mark.parametrize("mask", [None, "padding", "pairs", "both"])
def test_cross_attention_is_that_of_torch(mask):
    module = torch_weights.shake(
        torch.nn.MultiheadAttention(E, H, batch_first=True)
    )
    layer = MultiHeadAttention(H)
    layer.build((B, T, E), (B, S, E))
    hidden = torch.tensor(np.random.default_rng(4).random((T, S)) < 0.4)
    hidden[:, 0] = False  # No query without a key: torch makes NaN of it.
    padding = TORCH_SOURCE if mask in ("padding", "both") else None
    pairs = hidden if mask in ("pairs", "both") else None
    compare(
        lambda q, v: layer(
            q,
            v,
            padding_mask=None if padding is None else SOURCE_REAL,
            attention_mask=(
                None if pairs is None else from_torch_mask(pairs.numpy())
            ),
        ),
        lambda q, v: module(q, v, v, key_padding_mask=padding, attn_mask=pairs)[
            0
        ],
        layer,
        torch_weights.attention(layer, module),
        [random(B, T, E), random(B, S, E, seed=1)],
        np.ones((B, T), bool),
    )


def test_the_weights_of_each_head_are_those_of_torch():
    module = torch_weights.shake(
        torch.nn.MultiheadAttention(E, H, batch_first=True)
    )
    layer = MultiHeadAttention(H)
    layer.build((B, T, E), (B, S, E))
    torch_weights.copy(torch_weights.attention(layer, module), layer)
    query, value = random(B, T, E), random(B, S, E, seed=1)
    _, found = layer(
        query, value, padding_mask=SOURCE_REAL, return_attention_scores=True
    )
    torch_value = torch.tensor(value)
    _, expected = module(
        torch.tensor(query),
        torch_value,
        torch_value,
        key_padding_mask=TORCH_SOURCE,
        average_attn_weights=False,
    )
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found),
        expected.detach().numpy(),
        atol=TOLERANCE,
    )


KINDS = pytest.mark.parametrize(
    ("normalize_first", "activation"),
    [(True, "relu"), (False, "relu"), (True, "gelu"), (False, "gelu")],
)


def torch_arguments(normalize_first, activation):
    return {
        "d_model": E,
        "nhead": H,
        "dim_feedforward": F,
        "dropout": 0.0,
        "activation": activation,
        "layer_norm_eps": EPSILON,
        "batch_first": True,
        "norm_first": normalize_first,
    }


def our_arguments(normalize_first, activation):
    return {
        "num_heads": H,
        "intermediate_dim": F,
        "activation": activation,
        "normalize_first": normalize_first,
        "layer_norm_epsilon": EPSILON,
    }


@KINDS
@pytest.mark.parametrize("causal", [True, False])
def test_an_encoder_block_is_that_of_torch(normalize_first, activation, causal):
    module = torch_weights.shake(
        torch.nn.TransformerEncoderLayer(
            **torch_arguments(normalize_first, activation)
        )
    )
    block = EncoderBlock(**our_arguments(normalize_first, activation))
    block.build((B, T, E))
    compare(
        lambda x: block(x, padding_mask=TARGET_REAL, use_causal_mask=causal),
        lambda x: module(
            x,
            src_mask=TORCH_CAUSAL if causal else None,
            src_key_padding_mask=TORCH_TARGET,
        ),
        block,
        torch_weights.encoder_block(block, module),
        [random(B, T, E)],
        TARGET_REAL,
    )


@KINDS
def test_a_decoder_block_is_that_of_torch(normalize_first, activation):
    module = torch_weights.shake(
        torch.nn.TransformerDecoderLayer(
            **torch_arguments(normalize_first, activation)
        )
    )
    block = DecoderBlock(**our_arguments(normalize_first, activation))
    block.build((B, T, E), (B, S, E))
    compare(
        lambda x, context: block(
            x,
            context,
            padding_mask=TARGET_REAL,
            context_padding_mask=SOURCE_REAL,
        ),
        lambda x, context: module(
            x,
            context,
            tgt_mask=TORCH_CAUSAL,
            tgt_key_padding_mask=TORCH_TARGET,
            memory_key_padding_mask=TORCH_SOURCE,
        ),
        block,
        torch_weights.decoder_block(block, module),
        [random(B, T, E), random(B, S, E, seed=1)],
        TARGET_REAL,
    )


@KINDS
def test_stacks_are_torch_nn_transformer(normalize_first, activation):
    module = torch.nn.Transformer(
        num_encoder_layers=2,
        num_decoder_layers=2,
        **torch_arguments(normalize_first, activation),
    )
    if not normalize_first:
        # torch norms the end of a post-norm stack a second time.
        module.encoder.norm = module.decoder.norm = None
    torch_weights.shake(module)
    arguments = our_arguments(normalize_first, activation)
    encoder = Encoder(2, **arguments)
    decoder = Decoder(2, **arguments)
    encoder.build((B, S, E))
    decoder.build((B, T, E), (B, S, E))
    links = torch_weights.encoder(encoder, module.encoder)
    torch_weights.copy(links, encoder)

    def ours(source, target):
        context = encoder(source, padding_mask=SOURCE_REAL)
        return decoder(
            target,
            context,
            padding_mask=TARGET_REAL,
            context_padding_mask=SOURCE_REAL,
        )

    compare(
        ours,
        lambda source, target: module(
            source,
            target,
            tgt_mask=TORCH_CAUSAL,
            src_key_padding_mask=TORCH_SOURCE,
            tgt_key_padding_mask=TORCH_TARGET,
            memory_key_padding_mask=TORCH_SOURCE,
        ),
        decoder,
        links + torch_weights.decoder(decoder, module.decoder),
        [random(B, S, E), random(B, T, E, seed=1)],
        TARGET_REAL,
    )


def test_a_weight_without_a_link_is_noticed():
    block = EncoderBlock(H, F)
    block.build((B, T, E))
    with pytest.raises(ValueError, match="Nothing in torch is linked"):
        torch_weights.copy([], block)

"""Every public layer passes every check of `layer_checks`."""

import inspect

import keras
import numpy as np
import pytest
from layer_checks import CHECKS
from layer_checks import LOAD_MODELS
from layer_checks import LayerCase
from layer_checks import check_layer
from layer_checks import check_weights_file
from layer_checks import check_xla_fit
from layer_checks import save_model

import keras_tfm
from keras_tfm.layers import AdaptiveHalting
from keras_tfm.layers import AlibiBias
from keras_tfm.layers import Decoder
from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import Dropout
from keras_tfm.layers import Encoder
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import FeedForward
from keras_tfm.layers import LearnedPositionalEncoding
from keras_tfm.layers import LocalSelfAttention
from keras_tfm.layers import MemoryCompressedAttention
from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import OneHotPositionalEncoding
from keras_tfm.layers import PositionalEncoding
from keras_tfm.layers import RelativePositionBias
from keras_tfm.layers import RelativeSelfAttention
from keras_tfm.layers import Residual
from keras_tfm.layers import RotaryEmbedding
from keras_tfm.layers import TokenEmbedding
from keras_tfm.layers import UniversalDecoder
from keras_tfm.layers import UniversalEncoder
from keras_tfm.layers import gelu_tanh
from keras_tfm.models.token_mask import TokenMask
from keras_tfm.ops import Band
from keras_tfm.ops import OwnAndPreviousBlock

# Distinct, so that a swapped axis cannot pass. E is the smallest number of
# channels that splits into H heads and is none of the others.
B, T, S, H, E, C = 2, 5, 7, 3, 6, 11
V, F, LAYERS = 13, 17, 2

rng = np.random.default_rng(3)
IDS = rng.integers(1, V, (B, T), dtype="int32")
X = rng.normal(size=(B, T, E)).astype("float32")
CONTEXT = rng.normal(size=(B, S, C)).astype("float32")
HEADS = rng.normal(size=(B, T, H, E)).astype("float32")
DISTANCES = rng.integers(-9, 9, (B, T), dtype="int32")
KEYS = rng.normal(size=(B, S, E)).astype("float32")

SCORES = ({}, {"return_attention_scores": True})
DROP = {"dropout": 0.3, "attention_dropout": 0.2, "activation_dropout": 0.4}


def make(cls, *args, **fixed):
    return lambda **kwargs: cls(*args, **fixed, **kwargs)


CASES = {
    "TokenEmbedding": LayerCase(make(TokenEmbedding, V, E), (IDS,)),
    "TokenMask": LayerCase(make(TokenMask), (IDS,)),
    "PositionalEncoding": LayerCase(make(PositionalEncoding), (X,)),
    "LearnedPositionalEncoding": LayerCase(
        make(LearnedPositionalEncoding, T), (X,)
    ),
    "OneHotPositionalEncoding": LayerCase(
        make(OneHotPositionalEncoding, T), (X,)
    ),
    "Dropout": LayerCase(
        make(Dropout, 0.3),
        (X,),
        dropping=make(Dropout, 0.4, seed=3),
        num_dropouts=1,
    ),
    "FeedForward": LayerCase(
        make(FeedForward, F, activation=gelu_tanh),
        (X,),
        dropping=make(FeedForward, F, dropout=0.4),
        num_dropouts=1,
    ),
    "MultiHeadSelfAttention": LayerCase(
        make(MultiHeadSelfAttention, H, key_dim=5, value_dim=7),
        (X,),
        SCORES,
        dropping=make(MultiHeadSelfAttention, H, dropout=0.2),
        num_dropouts=1,
    ),
    "MultiHeadAttention": LayerCase(
        make(MultiHeadAttention, H, key_dim=5, value_dim=7),
        (X, CONTEXT),
        SCORES,
        dropping=make(MultiHeadAttention, H, dropout=0.2),
        num_dropouts=1,
    ),
    "MultiHeadAttention with keys": LayerCase(
        make(MultiHeadAttention, H, use_bias=False), (X, CONTEXT, KEYS), SCORES
    ),
    "MultiHeadSelfAttention with positions and shared heads": LayerCase(
        lambda **kwargs: MultiHeadSelfAttention(
            4,
            key_dim=6,
            num_key_value_heads=2,
            position=RotaryEmbedding(dtype=kwargs.get("dtype"), name="place"),
            **kwargs,
        ),
        (X,),
        SCORES,
    ),
    "RelativeSelfAttention": LayerCase(
        make(RelativeSelfAttention, H, 2, key_dim=5, value_dim=7),
        (X,),
        SCORES,
        dropping=make(RelativeSelfAttention, H, 2, dropout=0.2),
        num_dropouts=1,
    ),
    "LocalSelfAttention": LayerCase(
        make(LocalSelfAttention, H, OwnAndPreviousBlock(2), key_dim=5),
        (X,),
        SCORES,
        dropping=make(LocalSelfAttention, H, Band(1, 1), dropout=0.2),
        num_dropouts=1,
    ),
    "MemoryCompressedAttention": LayerCase(
        make(MemoryCompressedAttention, H, 2, key_dim=5, value_dim=7),
        (X,),
        SCORES,
        dropping=make(MemoryCompressedAttention, H, 2, dropout=0.2),
        num_dropouts=1,
    ),
    "RotaryEmbedding": LayerCase(make(RotaryEmbedding), (HEADS,)),
    "AlibiBias": LayerCase(make(AlibiBias, H), (DISTANCES,)),
    "RelativePositionBias": LayerCase(
        make(RelativePositionBias, H, 8, 7), (DISTANCES,)
    ),
    "Residual": LayerCase(
        lambda **kwargs: Residual(
            FeedForward(F, dtype=kwargs.get("dtype"), name="inside"),
            normalize_first=False,
            **kwargs,
        ),
        (X,),
        dropping=lambda: Residual(FeedForward(F, dropout=0.4), dropout=0.3),
        num_dropouts=2,
    ),
    "EncoderBlock": LayerCase(
        make(EncoderBlock, H, F, activation="gelu"),
        (X,),
        SCORES,
        dropping=make(EncoderBlock, H, F, **DROP),
        num_dropouts=4,
    ),
    "EncoderBlock of parts": LayerCase(
        lambda **kwargs: EncoderBlock(
            attention=MultiHeadSelfAttention(
                H, key_dim=5, dtype=kwargs.get("dtype"), name="attend"
            ),
            feed_forward=FeedForward(F, dtype=kwargs.get("dtype"), name="work"),
            **kwargs,
        ),
        (X,),
        SCORES,
    ),
    "DecoderBlock": LayerCase(
        make(DecoderBlock, H, F, normalize_first=False),
        (X, CONTEXT),
        SCORES,
        dropping=make(DecoderBlock, H, F, **DROP),
        num_dropouts=6,
    ),
    "DecoderBlock without context": LayerCase(
        make(DecoderBlock, H, F),
        (X,),
        SCORES,
        dropping=make(DecoderBlock, H, F, **DROP),
        num_dropouts=4,
    ),
    "Encoder": LayerCase(
        make(Encoder, LAYERS, H, F, activation=gelu_tanh),
        (X,),
        SCORES,
        dropping=make(Encoder, LAYERS, H, F, **DROP),
        num_dropouts=LAYERS * 4,
    ),
    "Decoder": LayerCase(
        make(Decoder, LAYERS, H, F, use_bias=False),
        (X, CONTEXT),
        SCORES,
        dropping=make(Decoder, LAYERS, H, F, **DROP),
        num_dropouts=LAYERS * 6,
    ),
    "AdaptiveHalting": LayerCase(make(AdaptiveHalting), (X,)),
    "UniversalEncoder": LayerCase(
        make(UniversalEncoder, LAYERS, H, F),
        (X,),
        (*SCORES, {"return_ponder_times": True}),
        dropping=make(UniversalEncoder, LAYERS, H, F, **DROP),
        num_dropouts=4,
    ),
    "UniversalDecoder": LayerCase(
        make(UniversalDecoder, LAYERS, H, F),
        (X, CONTEXT),
        (*SCORES, {"return_ponder_times": True}),
        dropping=make(UniversalDecoder, LAYERS, H, F, **DROP),
        num_dropouts=6,
    ),
}


def test_every_public_layer_has_a_case():
    public = {
        name
        for name, value in vars(keras_tfm.layers).items()
        if inspect.isclass(value) and issubclass(value, keras.layers.Layer)
    }
    assert public <= set(CASES)


# To compile takes seconds: once for each class, not for each way to make it.
VARIANTS = [name for name in CASES if " " in name]
EVERY_CHECK = [
    (name, check)
    for name in CASES
    for check in CHECKS
    if not (name in VARIANTS and check is check_xla_fit)
]


@pytest.mark.parametrize(
    ("name", "check"),
    EVERY_CHECK,
    ids=[f"{name}-{check.__name__}" for name, check in EVERY_CHECK],
)
def test_the_layer_passes(name, check):
    check(CASES[name])


@pytest.mark.parametrize("name", [n for n in CASES if n not in VARIANTS])
def test_a_weights_file_takes_every_weight_along(name, tmp_path):
    check_weights_file(CASES[name], tmp_path)


def test_every_layer_reloads_in_a_fresh_process(tmp_path, fresh_process):
    for name, case in CASES.items():
        save_model(case, tmp_path / f"{name}.keras")
    # Policies survive another global one: over there it is float32.
    keras.config.set_dtype_policy("mixed_bfloat16")
    blocks = ("EncoderBlock of parts", "Decoder")
    for name in blocks:
        for dtype in ("mixed_bfloat16", "float32"):
            path = tmp_path / f"{name} in {dtype}.keras"
            save_model(CASES[name], path, dtype)
    output = fresh_process(LOAD_MODELS)
    assert output.count("equal:") == len(CASES) + 2 * len(blocks)


def test_one_function_runs_every_check():
    check_layer(CASES["PositionalEncoding"])

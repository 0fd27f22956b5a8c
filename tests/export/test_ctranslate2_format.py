"""What another program's format can hold is told apart from what it cannot."""

import functools

import keras
import pytest
from models.transformer.made import fresh

from keras_tfm.export.ctranslate2_format import check_parts
from keras_tfm.export.ctranslate2_format import find_activation
from keras_tfm.export.ctranslate2_format import make_vocabularies
from keras_tfm.layers import FeedForward
from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import gelu_tanh
from keras_tfm.text.character_tokenizer import CharacterTokenizer

SOURCE, TARGET = CharacterTokenizer("abcdefghi"), CharacterTokenizer("abcdefg")


@functools.cache
def made():
    return fresh(None)


def block_of(stack, number=1):
    return getattr(made(), stack).blocks[number]


class OtherFeedForward(FeedForward):
    """Might compute anything."""


class Renamed(CharacterTokenizer):
    """A tokenizer of the same size whose pieces read otherwise."""

    def __init__(self, characters, names):
        super().__init__(characters)
        self.names = names

    def pieces(self, ids):
        return [self.names.get(piece, piece) for piece in super().pieces(ids)]


def test_a_plain_transformer_passes():
    check_parts(made())


@pytest.mark.parametrize(
    ("stack", "part", "layer", "message"),
    [
        (
            "encoder",
            "feed_forward",
            OtherFeedForward(17),
            "holds a `FeedForward` there. Received in encoder/block_1/"
            "feed_forward: OtherFeedForward. Export a SavedModel instead.",
        ),
        (
            "decoder",
            "self_attention",
            MultiHeadAttention(2),
            "holds a `MultiHeadSelfAttention` there. Received in decoder/",
        ),
        (
            "decoder",
            "cross_attention",
            keras.layers.MultiHeadAttention(2, 3),
            "block_1/cross_attention: MultiHeadAttention. Export",
        ),
        (
            "encoder",
            "self_attention",
            MultiHeadSelfAttention(2, key_dim=5),
            "needs key_dim=3, that is `hidden_dim / num_heads`. Received in "
            "encoder/block_1/self_attention: key_dim=5. Export a SavedModel",
        ),
        (
            "decoder",
            "cross_attention",
            MultiHeadAttention(2, value_dim=5),
            "needs value_dim=3.* decoder/block_1/cross_attention: value_dim=5",
        ),
    ],
)
def test_a_part_that_the_format_lacks_is_named_with_its_place(
    stack, part, layer, message, monkeypatch
):
    # A model is locked once it is built: past its own `__setattr__`.
    monkeypatch.setitem(vars(getattr(block_of(stack), part)), "sublayer", layer)
    with pytest.raises(ValueError, match=message):
        check_parts(made())


def test_padding_of_another_id_is_refused(monkeypatch):
    monkeypatch.setitem(made().arguments, "pad_id", 5)
    with pytest.raises(ValueError, match=r"with pad_id=0, .*: pad_id=5\. Exp"):
        check_parts(made())


def test_another_model_is_refused():
    with pytest.raises(TypeError, match=r"must be a `Transformer`.*Sequential"):
        check_parts(keras.Sequential())


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        ("relu", "RELU"),
        ("gelu", "GELU"),
        (gelu_tanh, "GELUTanh"),
        ("silu", "SWISH"),
        ("swish", "SWISH"),
    ],
)
def test_an_activation_has_its_name_in_the_format(
    activation, name, monkeypatch
):
    for stack in (made().encoder, made().decoder):
        for block in stack.blocks:
            monkeypatch.setitem(
                vars(block.feed_forward.sublayer),
                "activation",
                keras.activations.get(activation),
            )
    assert find_activation(made()) == name


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        (
            keras.activations.tanh,
            "relu, gelu, gelu_tanh, silu. Received in decoder/block_1/"
            "feed_forward: tanh. Export a SavedModel instead.",
        ),
        (keras.activations.gelu, "one activation for all.*: relu and gelu"),
    ],
)
def test_an_activation_that_the_format_lacks_is_refused(
    activation, message, monkeypatch
):
    feed_forward = block_of("decoder").feed_forward.sublayer
    monkeypatch.setitem(vars(feed_forward), "activation", activation)
    with pytest.raises(ValueError, match=message):
        find_activation(made())


def test_the_vocabularies_are_the_pieces_in_the_order_of_their_ids():
    found = make_vocabularies(made(), {"source": SOURCE, "target": TARGET})
    special = ["<pad>", "<s>", "</s>", "<unk>"]
    assert found == {
        "source": [*special, *"abcdefghi"],
        "target": [*special, *"abcdefg"],
    }


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (TARGET, TARGET, "source tokenizer has 11 ids, the model 13. Give the"),
        (SOURCE, SOURCE, "target tokenizer has 13 ids, the model 11. Give the"),
        (
            Renamed("abcdefghi", {"c": "a"}),
            TARGET,
            "source tokenizer with 2 ids for the piece 'a'. Make those",
        ),
        (
            SOURCE,
            Renamed("abcdefg", {"</s>": "[E]"}),
            r"one name each .* '</s>', .* and .* '\[E\]', .* the same names",
        ),
    ],
)
def test_tokenizers_that_would_mix_up_tokens_are_refused(
    source, target, message
):
    with pytest.raises(ValueError, match=message):
        make_vocabularies(made(), {"source": source, "target": target})

"""What the format of CTranslate2 holds of a Transformer, and what it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping

import keras

from keras_tfm.layers.attention.multi_head_attention import MultiHeadAttention
from keras_tfm.layers.attention.multi_head_self_attention import (
    MultiHeadSelfAttention,
)
from keras_tfm.layers.feed_forward.feed_forward import FeedForward
from keras_tfm.layers.feed_forward.gelu import gelu_tanh
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.text.tokenizer import Tokenizer

# Our activations, and their names in the format.
_ACTIVATIONS = {
    keras.activations.relu: "RELU",
    keras.activations.gelu: "GELU",
    gelu_tanh: "GELUTanh",
    keras.activations.silu: "SWISH",
}

# What a block is made of, and the one kind of layer that the format has for it.
_PARTS = {
    "self_attention": MultiHeadSelfAttention,
    "cross_attention": MultiHeadAttention,
    "feed_forward": FeedForward,
}

_WAY_OUT = "Export a SavedModel instead."


def check_parts(model: Transformer) -> None:
    """Raise an error unless the format holds every part of a model.

    Args:
        model: Transformer.

    Raises:
        TypeError: If the model is no `Transformer`.
        ValueError: If an attention or a feed-forward layer is of another kind,
            a head of another size than `hidden_dim / num_heads`, or the padding
            another id than that of the tokenizers.
    """
    if not isinstance(model, Transformer):
        raise TypeError(
            "`model` must be a `Transformer`: the format of CTranslate2 holds "
            f"no other model of ours. Received: {type(model).__name__}."
        )
    pad_id = model.arguments["pad_id"]
    if pad_id != Tokenizer.pad_id:
        # Within a row CTranslate2 masks no token.
        raise ValueError(
            f"CTranslate2 needs a model with pad_id={Tokenizer.pad_id}, the "
            f"padding of every tokenizer. Received: pad_id={pad_id}. {_WAY_OUT}"
        )
    head_size = model.arguments["hidden_dim"] // model.arguments["num_heads"]
    for where, layer, kind in _parts(model):
        # A subclass may compute something else.
        if type(layer) is not kind:
            raise ValueError(
                f"CTranslate2 holds a `{kind.__name__}` there. Received in "
                f"{where}: {type(layer).__name__}. {_WAY_OUT}"
            )
        for name in ("key_dim", "value_dim"):
            size = getattr(layer, name, None)
            if size not in (None, head_size):
                raise ValueError(
                    f"CTranslate2 needs {name}={head_size}, that is "
                    f"`hidden_dim / num_heads`. Received in {where}: "
                    f"{name}={size}. {_WAY_OUT}"
                )


def find_activation(model: Transformer) -> str:
    """Return the format's name of a model's activation.

    Args:
        model: Transformer.

    Raises:
        ValueError: If the format has no such activation, or blocks differ.

    Example:
        >>> model = Transformer(
        ...     7, num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=2
        ... )
        >>> find_activation(model)
        'RELU'
    """
    found = {
        layer.activation: where
        for where, layer, kind in _parts(model)
        if kind is FeedForward
    }
    for activation, where in found.items():
        if activation not in _ACTIVATIONS:
            known = ", ".join(one.__name__ for one in _ACTIVATIONS)
            name = getattr(activation, "__name__", activation)
            raise ValueError(
                f"CTranslate2 holds the activations {known}. Received in "
                f"{where}: {name}. {_WAY_OUT}"
            )
    if len(found) > 1:
        names = " and ".join(activation.__name__ for activation in found)
        raise ValueError(
            "CTranslate2 holds one activation for all blocks. Received: "
            f"{names}. {_WAY_OUT}"
        )
    return _ACTIVATIONS[next(iter(found))]


def make_vocabularies(
    model: Transformer, tokenizers: Mapping[str, Tokenizer]
) -> dict[str, list[str]]:
    """List the pieces of both sides by id.

    Args:
        model: Transformer.
        tokenizers: Tokenizers by `"source"` and `"target"`.

    Returns:
        Lists of pieces by `"source"` and `"target"`.

    Raises:
        ValueError: If a tokenizer does not fit the model, two of its ids have
            one piece, or the sides name their special tokens differently.
    """
    vocabularies = {}
    for side, tokenizer in tokenizers.items():
        size = model.arguments[f"{side}_vocabulary_size"]
        if tokenizer.vocabulary_size != size:
            raise ValueError(
                f"The {side} tokenizer has {tokenizer.vocabulary_size} ids, "
                f"the model {size}. Give the tokenizers of this model."
            )
        pieces = tokenizer.pieces(range(size))
        piece, times = Counter(pieces).most_common(1)[0]
        if times > 1:
            raise ValueError(
                "CTranslate2 tells tokens apart by their pieces. Received a "
                f"{side} tokenizer with {times} ids for the piece {piece!r}. "
                "Make those pieces distinct."
            )
        vocabularies[side] = pieces
    count = len(Tokenizer.special_pieces)
    source, target = (
        vocabularies[side][:count] for side in ("source", "target")
    )
    if source != target:
        raise ValueError(
            "CTranslate2 has one name each for the padding, the start, the end "
            f"and the unknown token of both sides. Received: {source} and "
            f"{target}. Give the tokenizers the same names."
        )
    return vocabularies


def _parts(
    model: Transformer,
) -> Iterator[tuple[str, keras.layers.Layer, type[keras.layers.Layer]]]:
    for stack in (model.encoder, model.decoder):
        for block in stack.blocks:
            for name, kind in _PARTS.items():
                if stack is model.decoder or name != "cross_attention":
                    where = f"{stack.name}/{block.name}/{name}"
                    yield where, getattr(block, name).sublayer, kind

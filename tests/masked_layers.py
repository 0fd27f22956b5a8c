"""Every layer that takes masks, behind one way to make and to call it."""

import dataclasses
from functools import cache

import keras
import numpy as np
from keras import ops
from layer_checks import inner_layers
from layer_checks import randomise
from numpy_reference import all_masks

from keras_tfm.layers import Decoder
from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import Dropout
from keras_tfm.layers import Encoder
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import LocalSelfAttention
from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import RelativeSelfAttention
from keras_tfm.ops import Band

# Distinct, so that a swapped axis cannot pass.
B, T, S, H, D = 2, 5, 7, 3, 11
E, F = H * D, 13

SELF_ATTENTIONS = (
    "MultiHeadSelfAttention",
    "LocalSelfAttention",
    "RelativeSelfAttention",
)
SELF_KINDS = (*SELF_ATTENTIONS, "EncoderBlock", "Encoder")
CONTEXT_KINDS = ("MultiHeadAttention", "DecoderBlock", "Decoder")
ATTENTIONS = (*SELF_ATTENTIONS, "MultiHeadAttention")
# The last query does not see the first key; the first one sees the last.
WINDOW = Band(T - 2, T - 1)
KINDS = SELF_KINDS + CONTEXT_KINDS


@dataclasses.dataclass(frozen=True)
class Masks:
    """All masks of one call, as NumPy arrays, and how they are handed over.

    Args:
        padding: `(B, T)` for the inputs, or `None`.
        context_padding: `(B, S)` for the context, or `None`.
        attention: `(T, T)`, `(B, T, T)` or `(B, H, T, T)`, or `None`.
        context_attention: The same with S keys, or `None`.
        causal: Boolean.
        implicit: Boolean. Whether the padding comes as Keras masks.
    """

    padding: np.ndarray | None = None
    context_padding: np.ndarray | None = None
    attention: np.ndarray | None = None
    context_attention: np.ndarray | None = None
    causal: bool = False
    implicit: bool = False

    def allowed(self, kind):
        """Return who may attend to whom, for each kind of weights."""
        own = all_masks(
            B,
            H,
            T,
            T,
            padding=self.padding,
            attention=self.attention,
            causal=self.causal,
        )
        cross = all_masks(
            B,
            H,
            T,
            S,
            padding=self.context_padding,
            attention=self.context_attention,
            causal=self.causal and kind == "MultiHeadAttention",
        )
        if kind == "MultiHeadAttention":
            return [cross]
        near = np.ones((T, T), bool)
        near[T - 1, 0] = False
        return {
            "MultiHeadSelfAttention": [own],
            "LocalSelfAttention": [own & near],
            "RelativeSelfAttention": [own],
            "EncoderBlock": [own],
            "Encoder": [own, own],
            "DecoderBlock": [own, cross],
            "Decoder": [own, own, cross, cross],
        }[kind]

    def real(self):
        """Return where the inputs are real: `(B, T)`."""
        return np.ones((B, T), bool) if self.padding is None else self.padding


class WithMask(keras.layers.Layer):
    """Give a tensor a Keras mask, as an embedding does."""

    def call(self, inputs):
        return ops.copy(inputs[0])

    def compute_mask(self, inputs, previous_mask):
        return inputs[1]


def with_mask(sequence, mask):
    """Return a copy of `sequence` that carries `mask` as its Keras mask."""
    dtype = keras.backend.standardize_dtype(np.asarray(sequence).dtype)
    return WithMask(dtype=dtype)([sequence, ops.convert_to_tensor(mask)])


@cache
def layer_of(
    kind, normalize_first=True, dropout=0.0, use_bias=True, dtype="float32"
):
    """Make a layer of a kind with random weights; the same one each time."""
    block = {
        "num_heads": H,
        "intermediate_dim": F,
        "normalize_first": normalize_first,
        "dropout": dropout,
        "attention_dropout": dropout,
        "activation_dropout": dropout,
        "use_bias": use_bias,
        "dtype": dtype,
    }
    attention = {
        "num_heads": H,
        "dropout": dropout,
        "use_bias": use_bias,
        "dtype": dtype,
    }
    layer = {
        "MultiHeadSelfAttention": lambda: MultiHeadSelfAttention(**attention),
        "LocalSelfAttention": lambda: LocalSelfAttention(
            window=WINDOW, **attention
        ),
        "RelativeSelfAttention": lambda: RelativeSelfAttention(
            max_distance=2, **attention
        ),
        "MultiHeadAttention": lambda: MultiHeadAttention(**attention),
        "EncoderBlock": lambda: EncoderBlock(**block),
        "DecoderBlock": lambda: DecoderBlock(**block),
        "Encoder": lambda: Encoder(num_layers=2, **block),
        "Decoder": lambda: Decoder(num_layers=2, **block),
    }[kind]()
    layer.build((B, T, E), *[(B, S, E)] * (kind in CONTEXT_KINDS))
    randomise(layer)
    return layer


def arguments(kind, x, context, masks):
    """Return the tensors and the mask arguments for a layer of a kind."""
    padding, context_padding = masks.padding, masks.context_padding
    if masks.implicit:
        if padding is not None:
            x = with_mask(x, padding)
        if context_padding is not None:
            context = with_mask(context, context_padding)
        padding = context_padding = None
    elif kind == "MultiHeadAttention" and masks.padding is not None:
        # The only way to tell it of padded queries.
        x = with_mask(x, padding)
    flags = {"use_causal_mask": masks.causal}
    if kind in SELF_KINDS:
        given = {"padding_mask": padding, "attention_mask": masks.attention}
        return (x,), {**flags, **given}
    if kind == "MultiHeadAttention":
        given = {
            "padding_mask": context_padding,
            "attention_mask": masks.context_attention,
        }
        return (x, context), {**flags, **given}
    given = {
        "padding_mask": padding,
        "context_padding_mask": context_padding,
        "attention_mask": masks.attention,
        "context_attention_mask": masks.context_attention,
    }
    return (x, context), {**flags, **given}


def run(layer, x, context, masks, scores=False, training=False):
    """Call a layer; return the output and a flat list of all weights.

    The dropouts drop the same entries at every call.
    """
    rewind_dropouts(layer)
    tensors, flags = arguments(type(layer).__name__, x, context, masks)
    result = layer(
        *tensors, **flags, return_attention_scores=scores, training=training
    )
    output, *weights = keras.tree.flatten(result)
    return to_float(output), [to_float(weight) for weight in weights]


def rewind_dropouts(layer):
    """Let every dropout of a layer start its stream again."""
    for number, inner in enumerate(inner_layers(layer)):
        if isinstance(inner, Dropout) and inner.rate:
            inner.seed_generator.state.assign([number, 0])


def to_float(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32"))


def sequences(seed=0):
    """Draw inputs `(B, T, E)` and a context `(B, S, E)`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(B, T, E)).astype("float32")
    return x, rng.normal(size=(B, S, E)).astype("float32")

"""The parts that encoder and decoder blocks are made of."""

import keras

from keras_tfm.layers.attention.multi_head_self_attention import (
    MultiHeadSelfAttention,
)
from keras_tfm.layers.blocks.residual import Residual
from keras_tfm.layers.feed_forward.feed_forward import FeedForward


class BlockParts(keras.layers.Layer):
    """Abstract: parts ready-made or by their sizes, each within a `Residual`.

    The arguments are described in `EncoderBlock` and `DecoderBlock`.
    """

    def __init__(
        self,
        num_heads=None,
        intermediate_dim=None,
        activation="relu",
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        normalize_first=True,
        layer_norm_epsilon=1e-6,
        use_bias=True,
        attention=None,
        feed_forward=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check_one("num_heads", num_heads, "attention", attention)
        _check_one(
            "intermediate_dim", intermediate_dim, "feed_forward", feed_forward
        )
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.use_bias = use_bias
        self.supports_masking = True
        # Made here, so that a size out of range is an error at once.
        if attention is None:
            attention = self._attention(MultiHeadSelfAttention)
        if feed_forward is None:
            feed_forward = FeedForward(
                intermediate_dim,
                activation=activation,
                dropout=activation_dropout,
                dtype=self.dtype_policy,
                name="feed_forward",
            )
        self.self_attention = self._within_residual(attention, "self_attention")
        self.feed_forward = self._within_residual(feed_forward, "feed_forward")

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, so that the flags change the shapes as they do there.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "use_bias": self.use_bias,
            "attention": _serialize_given(self.num_heads, self.self_attention),
            "feed_forward": _serialize_given(
                self.intermediate_dim, self.feed_forward
            ),
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            name: keras.saving.deserialize_keras_object(part)
            for name, part in config.items()
            if name in ("attention", "cross_attention", "feed_forward")
            and part is not None
        }
        return cls(**{**config, **parts})

    def _attention(self, kind, name="attention"):
        return kind(
            self.num_heads,
            dropout=self.attention_dropout,
            use_bias=self.use_bias,
            dtype=self.dtype_policy,
            name=name,
        )

    def _within_residual(self, part, name):
        return Residual(
            part,
            dropout=self.dropout,
            normalize_first=self.normalize_first,
            layer_norm_epsilon=self.layer_norm_epsilon,
            dtype=self.dtype_policy,
            name=name,
        )


def _serialize_given(size, residual):
    # A part that was made from its size is made from it again.
    if size is not None:
        return None
    return keras.saving.serialize_keras_object(residual.sublayer)


def _check_one(size_name, size, part_name, part):
    if (size is None) == (part is None):
        raise ValueError(
            f"Give either `{size_name}` or a ready-made `{part_name}`. "
            f"Received: {size_name}={size!r}, {part_name}={part!r}."
        )

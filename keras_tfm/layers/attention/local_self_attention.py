"""Self-attention within a window of positions.

Shape letters: B batch, H heads, G heads of keys and values, T length, D head
size, S slots of a cache.
"""

import keras
from keras import ops

from keras_tfm.layers.attention.projected_self_attention import (
    ProjectedSelfAttention,
)
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.local_attention import local_attention
from keras_tfm.ops.local_attention import spread_weights
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding
from keras_tfm.ops.positions import positions_from
from keras_tfm.ops.ring_cache import RingSlots
from keras_tfm.ops.windows import Window


@keras.saving.register_keras_serializable(package="keras_tfm")
class LocalSelfAttention(ProjectedSelfAttention):
    """Attend from each position to those in a window around it.

    The result of `MultiHeadSelfAttention` under the window's mask, in time and
    memory that grow with the length and not with its square. It takes the place
    of `MultiHeadSelfAttention` in `EncoderBlock` and `DecoderBlock` (argument
    `attention`). A cache for decoding holds the window and no more.

    Masking: as `MultiHeadSelfAttention`; the window is one more mask.

    Args:
        num_heads: Positive integer. Number of attention heads.
        window: Who may attend to whom: `OwnBlock(length)`,
            `OwnAndPreviousBlock(length)` or `Band(left, right)` of
            `keras_tfm.ops`.
        key_dim: Positive integer. Size of each head for queries and keys.
            Defaults to the width of the inputs divided by `num_heads`.
        value_dim: Positive integer. Size of each head for values.
            Defaults to `key_dim`.
        dropout: Float in [0, 1). Share of attention weights dropped in
            training. Defaults to `0.0`.
        use_bias: Boolean. Whether the projections have a bias.
            Defaults to `True`.
        kernel_initializer: Keras initializer of the projections. Defaults to
            `"glorot_uniform"`.
        num_key_value_heads: Positive integer that divides `num_heads`.
            Defaults to `num_heads`.
        position: Layer for positions within the attention, such as
            `RotaryEmbedding`. Defaults to `None`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        padding_mask: Boolean tensor `(batch, length)`; `True` means "is a real
            token".
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            length, length)`; `True` means "may attend".
        use_causal_mask: Boolean. Hide the future. Defaults to `False`.
        return_attention_scores: Boolean. Whether to return the weights too; all
            of them then are in memory. Defaults to `False`.
        training: Boolean. Whether dropout is active.

    Output shape:
        `(batch, length, hidden_dim)`; with `return_attention_scores=True` also
        float32 `(batch, num_heads, length, length)`, the weights before
        dropout.

    Raises:
        TypeError: If a mask has a floating dtype, or `window` or `position` is
            something else.
        ValueError: If a size is out of range.

    Example:
        >>> from keras_tfm.ops import OwnBlock
        >>> layer = LocalSelfAttention(num_heads=2, window=OwnBlock(2))
        >>> x = keras.ops.ones((1, 5, 8))
        >>> tuple(layer(x, use_causal_mask=True).shape)
        (1, 5, 8)

    Reference:
        [Liu et al., 2018](https://arxiv.org/abs/1801.10198), section 4.2.4, and
        [Parmar et al., 2018](https://arxiv.org/abs/1802.05751), section 3.3.
    """

    def __init__(self, num_heads, window, *args, **kwargs):
        # Its tiles are the blocks of the window.
        super().__init__(num_heads, *args, **kwargs, blockwise_from=None)
        if not isinstance(window, Window):
            raise TypeError(
                "`window` must be `OwnBlock(length)`, "
                "`OwnAndPreviousBlock(length)` or `Band(left, right)` of "
                f"`keras_tfm.ops`. Received: window={window!r}."
            )
        self.window = window

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        if padding_mask is None:
            padding_mask = implicit_mask(inputs)
        batch_size, length = ops.shape(inputs)[:2]
        positions = positions_from(length)
        query, key, value = self.project(zero_padding(inputs, padding_mask))

        def drop(weights):
            return self.drop(weights, training=training)

        heads, weights = local_attention(
            self.place(query, positions),
            self.share_heads(self.place(key, positions)),
            self.share_heads(value),
            self.window,
            self.expanded_masks(padding_mask, attention_mask, (length, length)),
            use_causal_mask,
            None if self.position is None else self.position.scores,
            drop if self.dropout else None,
        )
        output = self.attention_output(join_heads(heads))
        if not return_attention_scores:
            return output
        return output, spread_weights(weights, self.window, batch_size, length)

    def initial_cache(self, batch_size, max_length, num_beams=1):
        """Make an empty cache for `step`.

        Args:
            batch_size: Integer or scalar tensor B.
            max_length: Integer, the most positions that will be decoded.
            num_beams: Integer, the alternatives at each position.
                Defaults to `1`.

        Returns:
            A triple of zero tensors: keys `(B, G, D, S)` and values `(B, G, S,
            D)` of the latest positions, no more than the window reaches, and
            `(B, max_length)`, which only tells the length.
        """
        return (
            *self.empty_cache(batch_size, self._places(max_length) * num_beams),
            ops.zeros((batch_size, max_length), "int8"),
        )

    def grow_cache(self, cache, max_length, num_beams=1):
        """Make room for more positions; what is cached stays."""
        keys, values, length = cache
        # Until it has its full size, each position lies at its own number.
        return (
            *self.grown(keys, values, self._places(max_length) * num_beams),
            ops.pad(length, ((0, 0), (0, max_length - length.shape[1]))),
        )

    def step(
        self,
        inputs,
        cache,
        cache_index,
        padding_mask=None,
        ancestors=None,
        return_attention_scores=False,
    ):
        """Attend causally to the window of the cached and the new positions.

        Equal to `call` with `use_causal_mask=True` at the same positions.

        Args:
            inputs: Float tensor `(batch, new_length, hidden_dim)`.
            cache: What `initial_cache` or the step before returned.
            cache_index: Integer or scalar tensor: how many positions came
                before.
            padding_mask: Boolean tensor `(batch, max_length)` of the cached and
                the new positions.
            ancestors: Integer tensor `(batch, new_length, max_length)`: the
                new ones are alternatives at one position, see
                `keras_tfm.ops.cache_slots`. Defaults to `None`: they are
                consecutive.
            return_attention_scores: Boolean. Whether to return the weights too,
                `(batch, heads, new_length, max_length * num_beams)`.

        Returns:
            The output and the new cache, and the weights if asked for.
        """
        keys, values, room = cache
        beams = 1 if ancestors is None else ancestors.shape[1]
        slots = RingSlots(
            values.shape[2] // beams, inputs.shape[1], cache_index, ancestors
        )
        query, key, value = self.project(inputs)
        key = self.place(key, slots.query_positions)
        key = ops.transpose(key, (0, 1, 3, 2))
        seen_keys = slots.joined(keys, key, 3)
        positions = slots.column_positions()
        if padding_mask is not None:
            last = padding_mask.shape[1] - 1
            padding_mask = ops.take(
                padding_mask, ops.clip(positions, 0, last), axis=1
            )
        result = self.attend(
            self.place(query, slots.query_positions),
            self.share_heads(ops.transpose(seen_keys, (0, 1, 3, 2))),
            self.share_heads(slots.joined(values, value, 2)),
            padding_mask,
            slots.mask(self.window.visible),
            self.with_scores(None, slots.query_positions, positions),
            return_attention_scores=return_attention_scores,
            training=False,
        )
        cache = (
            slots.written(keys, key, 3),
            slots.written(values, value, 2),
            room,
        )
        if return_attention_scores:
            output, weights = result
            return output, cache, slots.spread(weights, room.shape[1])
        return result, cache

    def _places(self, max_length):
        # The present position is not one of them.
        return min(max_length, max(self.window.reach, 1))

    def get_config(self):
        config = super().get_config()
        config.pop("blockwise_from")
        window = keras.saving.serialize_keras_object(self.window)
        return {**config, "window": window}

    @classmethod
    def from_config(cls, config):
        window = config["window"]
        if not isinstance(window, Window):
            window = keras.saving.deserialize_keras_object(window)
        return super().from_config({**config, "window": window})

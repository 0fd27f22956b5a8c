"""Self-attention to a memory that is a few times shorter than the sequence.

Shape letters: B batch, H heads, G heads of keys and values, T length, N slots
of the memory, D head size, C channels, c positions of a slot, P new positions,
K alternatives of a search.
"""

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.layers.attention.projected_self_attention import (
    ProjectedSelfAttention,
)
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.attention import split_heads
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.masks import expand_attention_mask
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding
from keras_tfm.ops.memory_compression import latest_windows
from keras_tfm.ops.memory_compression import number_of_slots
from keras_tfm.ops.memory_compression import real_slots
from keras_tfm.ops.memory_compression import slot_inputs
from keras_tfm.ops.memory_compression import slots_of_ancestors
from keras_tfm.ops.memory_compression import visible_slots
from keras_tfm.ops.memory_compression import write_slots
from keras_tfm.ops.positions import positions_from


@keras.saving.register_keras_serializable(package="keras_tfm")
class MemoryCompressedAttention(ProjectedSelfAttention):
    """Attend from each position to slots that stand for several positions.

    A strided convolution makes one key and one value of `compression`
    positions next to each other, so that the weights take as many times less
    time and memory. It takes the place of `MultiHeadSelfAttention` in
    `EncoderBlock` and `DecoderBlock` (argument `attention`).

    With `use_causal_mask=True` slot t ends with position `compression * t`, and
    query i sees it if that is at most i: slot 0 is the first position alone,
    and a query does not see the last few positions, unless it ends a slot. A
    layer of local attention beside it does. Without the causal mask slot t
    begins with position `compression * t`, and all positions are in a slot.

    Masking: a slot is hidden where none of its positions is a real token;
    padded positions count as zeros. `attention_mask` is about slots.

    Args:
        num_heads: Positive integer. Number of attention heads.
        compression: Positive integer, positions of a slot: width and stride of
            the convolution. Defaults to `3`.
        key_dim: Positive integer. Size of each head for queries and keys.
            Defaults to the width of the inputs divided by `num_heads`.
        value_dim: Positive integer. Size of each head for values.
            Defaults to `key_dim`.
        dropout: Float in [0, 1). Share of attention weights dropped in
            training. Defaults to `0.0`.
        use_bias: Boolean. Whether the projections have a bias.
            Defaults to `True`.
        kernel_initializer: Keras initializer of the projections and of the
            convolutions. Defaults to `"glorot_uniform"`.
        blockwise_from: See `MultiHeadSelfAttention`.
        num_key_value_heads: Positive integer that divides `num_heads`.
            Defaults to `num_heads`.
        position: Layer for positions within the attention, such as
            `RotaryEmbedding`. A slot stands at position `compression * t`.
            Defaults to `None`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        padding_mask: Boolean tensor `(batch, length)`; `True` means "is a real
            token".
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            length, slots)`; `True` means "may attend".
        use_causal_mask: Boolean. Hide the future. Defaults to `False`.
        return_attention_scores: Boolean. Whether to return the weights too.
            Defaults to `False`.
        training: Boolean. Whether dropout is active.

    Output shape:
        `(batch, length, hidden_dim)`; with `return_attention_scores=True` also
        float32 `(batch, num_heads, length, slots)`, the weights before dropout;
        there are `length / compression` slots, rounded up.

    Raises:
        TypeError: If a mask has a floating dtype, or `position` is no layer for
            positions within the attention.
        ValueError: If a size is out of range.

    Example:
        >>> layer = MemoryCompressedAttention(num_heads=2)
        >>> x = keras.ops.ones((1, 7, 8))
        >>> output, scores = layer(x, return_attention_scores=True)
        >>> tuple(output.shape), tuple(scores.shape)
        ((1, 7, 8), (1, 2, 7, 3))

    Reference:
        [Liu et al., 2018](https://arxiv.org/abs/1801.10198), section 4.2.4.
    """

    def __init__(self, num_heads, compression=3, *args, **kwargs):
        super().__init__(num_heads, *args, **kwargs)
        self.compression = check_positive_int("compression", compression)

    def build(self, input_shape):
        super().build(input_shape)
        self.key_compression, self.value_compression = (
            self._convolution(name, self.num_key_value_heads * size)
            for name, size in (
                ("key_compression", self._key_size),
                ("value_compression", self._value_size),
            )
        )

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
        query, key, value = self.project(zero_padding(inputs, padding_mask))
        length, factor = ops.shape(inputs)[1], self.compression
        positions = positions_from(length)
        slots = number_of_slots(length, factor)
        ends = positions_from(slots) * factor

        def compressed(heads, convolution):
            sequence = zero_padding(join_heads(heads), padding_mask)
            windows = slot_inputs(sequence, factor, use_causal_mask)
            return split_heads(convolution(windows), self.num_key_value_heads)

        key = compressed(key, self.key_compression)
        value = compressed(value, self.value_compression)
        if padding_mask is not None:
            padding_mask = real_slots(padding_mask, factor, use_causal_mask)
        if use_causal_mask:
            attention_mask = combine_masks(
                expand_attention_mask(visible_slots(positions, slots, factor)),
                expand_attention_mask(attention_mask),
            )
        return self.attend(
            self.place(query, positions),
            self.share_heads(self.place(key, ends)),
            self.share_heads(value),
            padding_mask,
            attention_mask,
            self.with_scores(None, positions, ends),
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def initial_cache(self, batch_size, max_length, num_beams=1):
        """Make an empty cache for `step`.

        Args:
            batch_size: Integer or scalar tensor B.
            max_length: Integer, the most positions that will be decoded.
            num_beams: Integer, the alternatives at each position.
                Defaults to `1`.

        Returns:
            A triple of zero tensors: keys `(B, G, D, N * K)` and values `(B, G,
            N * K, D)` of the slots, and the keys and values `(B, (c - 1) * K,
            C)` of the latest positions, which are in no slot yet.
        """
        slots = number_of_slots(max_length, self.compression) * num_beams
        channels = self.num_key_value_heads * (
            self._key_size + self._value_size
        )
        latest = (self.compression - 1) * num_beams
        return (
            *self.empty_cache(batch_size, slots),
            ops.zeros((batch_size, latest, channels), self.compute_dtype),
        )

    def grow_cache(self, cache, max_length, num_beams=1):
        """Make room for more positions; what is cached stays."""
        keys, values, latest = cache
        slots = number_of_slots(max_length, self.compression) * num_beams
        return (*self.grown(keys, values, slots), latest)

    def step(
        self,
        inputs,
        cache,
        cache_index,
        padding_mask=None,
        ancestors=None,
        return_attention_scores=False,
    ):
        """Attend causally to the slots that end by the new positions.

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
                `(batch, heads, new_length, slots * num_beams)`.

        Returns:
            The output and the new cache, and the weights if asked for.
        """
        keys, values, latest = cache
        factor = self.compression
        beams = 1 if ancestors is None else ancestors.shape[1]
        slots = values.shape[2] // beams
        index = ops.cast(cache_index, "int32")
        positions = ops.repeat(
            positions_from(inputs.shape[1] // beams, index), beams
        )
        query, key, value = self.project(inputs)
        new = ops.concatenate([join_heads(key), join_heads(value)], axis=-1)
        if padding_mask is not None:
            new = zero_padding(new, ops.take(padding_mask, positions, axis=1))
            padding_mask = padding_mask[:, : (slots - 1) * factor + 1]
            padding_mask = real_slots(padding_mask, factor, causal=True)
            padding_mask = ops.repeat(padding_mask, beams, axis=1)
        latest = ops.concatenate([latest, new], axis=1)
        key, value = self._compress_latest(latest, index, ancestors)
        key = ops.transpose(self.place(key, positions), (0, 1, 3, 2))
        keys = write_slots(keys, key, 3, factor, index, beams)
        values = write_slots(values, value, 2, factor, index, beams)
        mask = ops.repeat(
            visible_slots(positions, slots, factor), beams, axis=1
        )
        if ancestors is not None:
            own = slots_of_ancestors(ancestors, slots, factor)
            mask = ops.logical_and(mask, own)
        ends = ops.repeat(positions_from(slots) * factor, beams)
        result = self.attend(
            self.place(query, positions),
            self.share_heads(ops.transpose(keys, (0, 1, 3, 2))),
            self.share_heads(values),
            padding_mask,
            mask,
            self.with_scores(None, positions, ends),
            return_attention_scores=return_attention_scores,
            training=False,
        )
        still_open = (factor - 1) * beams
        cache = (keys, values, latest[:, latest.shape[1] - still_open :])
        if return_attention_scores:
            output, weights = result
            return output, cache, weights
        return result, cache

    def _convolution(self, name, channels):
        # A convolution whose stride is its width is one matrix product.
        convolution = keras.layers.Dense(
            channels,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )
        convolution.build((None, None, self.compression * channels))
        return convolution

    def _compress_latest(self, latest, index, ancestors):
        """Make the key and value of a slot that ends at each new position."""
        windows = latest_windows(latest, self.compression, index, ancestors)
        keys = self.num_key_value_heads * self._key_size
        return [
            split_heads(
                convolution(ops.reshape(part, (*ops.shape(part)[:2], width))),
                self.num_key_value_heads,
            )
            for convolution, part, width in (
                (
                    self.key_compression,
                    windows[..., :keys],
                    self.compression * keys,
                ),
                (
                    self.value_compression,
                    windows[..., keys:],
                    self.compression * (windows.shape[-1] - keys),
                ),
            )
        ]

    def get_config(self):
        return {**super().get_config(), "compression": self.compression}

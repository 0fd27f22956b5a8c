"""Multi-head attention of a sequence to itself.

Shape letters: B batch, H heads, T query length, S key length, D head size.
"""

import keras
from keras import ops

from keras_tfm.layers.attention.projected_attention import ProjectedAttention
from keras_tfm.ops.attention import split_heads
from keras_tfm.ops.masks import causal_mask
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding


@keras.saving.register_keras_serializable(package="keras_tfm")
class MultiHeadSelfAttention(ProjectedAttention):
    """Attend from each position of a sequence to all its positions.

    The result of `MultiHeadAttention(...)(x, x)`, with the queries, keys and
    values of all heads made by one matrix product. The kernel holds them in the
    order query, key, value.

    Masking: `padding_mask`, `attention_mask` and `use_causal_mask` are combined
    with AND; without a `padding_mask` the Keras mask of the inputs takes its
    place. A query that may attend nowhere yields zeros before the output
    projection. The inputs and their masks are left as they are.

    Args:
        num_heads: Positive integer. Number of attention heads.
        key_dim: Positive integer. Size of each head for queries and keys.
            Defaults to the width of the inputs divided by `num_heads`.
        value_dim: Positive integer. Size of each head for values.
            Defaults to `key_dim`.
        dropout: Float in [0, 1). Share of attention weights dropped in
            training. Defaults to `0.0`.
        use_bias: Boolean. Whether the projections have a bias.
            Defaults to `True`.
        kernel_initializer: Keras initializer of the projections; queries, keys
            and values are drawn as three matrices. Defaults to
            `"glorot_uniform"`.
        blockwise_from: Non-negative integer. From this length on the weights
            are made tile by tile and never in memory as a whole, unless they
            are asked for; see `keras_tfm.ops.blockwise_attention`. With `0`
            always, with `None` never. Defaults to `1024`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        padding_mask: Boolean tensor `(batch, length)`; `True` means "is a real
            token".
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            length, length)`; `True` means "may attend". Of rank 2 it is
            `(target_length, source_length)`.
        position_bias: Float tensor that broadcasts to the same shape, added to
            the scores.
        use_causal_mask: Boolean. Hide the future. Defaults to `False`.
        return_attention_scores: Boolean. Whether to return the weights too.
            Defaults to `False`.
        training: Boolean. Whether dropout is active.

    Output shape:
        `(batch, length, hidden_dim)`; with `return_attention_scores=True` also
        float32 `(batch, num_heads, length, length)`, the weights before
        dropout.

    Raises:
        TypeError: If a mask has a floating dtype.
        ValueError: If a size is out of range, or the width of the inputs does
            not divide by `num_heads` and no `key_dim` is given.

    Example:
        >>> layer = MultiHeadSelfAttention(num_heads=2)
        >>> x = keras.ops.ones((1, 5, 8))
        >>> tuple(layer(x, use_causal_mask=True).shape)
        (1, 5, 8)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2.
    """

    def build(self, input_shape):
        hidden_dim = input_shape[-1]
        self._key_size, self._value_size = self.head_sizes(hidden_dim)
        self.query_key_value = self.build_projection(
            "query_key_value",
            input_shape,
            [self._key_size, self._key_size, self._value_size],
        )
        self.build_output(hidden_dim, self._value_size)
        self.built = True

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        position_bias=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        if padding_mask is None:
            padding_mask = implicit_mask(inputs)
        query, key, value = self.project(zero_padding(inputs, padding_mask))
        return self.attend(
            query,
            key,
            value,
            padding_mask,
            attention_mask,
            position_bias,
            use_causal_mask,
            return_attention_scores,
            training,
        )

    def project(self, inputs):
        """Make queries, keys and values `(B, H, T, D)` of `(B, T, E)`."""
        joined = self.query_key_value(inputs)
        keys = self.num_heads * self._key_size
        parts = ops.split(joined, [keys, 2 * keys], axis=-1)
        return [split_heads(part, self.num_heads) for part in parts]

    def initial_cache(self, batch_size, max_length):
        """Make an empty cache for `step`.

        Args:
            batch_size: Integer or scalar tensor B.
            max_length: Integer S, the most tokens that the cache will hold.

        Returns:
            A pair of zero tensors: keys `(B, H, D, S)`, so that their product
            with a query runs along the positions, and values `(B, H, S, D)`.
        """
        heads, length = self.num_heads, max_length
        return (
            ops.zeros(
                (batch_size, heads, self._key_size, length), self.compute_dtype
            ),
            ops.zeros(
                (batch_size, heads, length, self._value_size),
                self.compute_dtype,
            ),
        )

    def step(
        self,
        inputs,
        cache,
        cache_index,
        padding_mask=None,
        attention_mask=None,
        return_attention_scores=False,
    ):
        """Attend causally to the cached positions and the new ones.

        Equal to `call` with `use_causal_mask=True` at the same positions.

        Args:
            inputs: Float tensor `(batch, new_length, hidden_dim)`.
            cache: What `initial_cache` or the step before returned.
            cache_index: Integer or scalar tensor: how many positions the cache
                holds; the new ones are written from there.
            padding_mask: Boolean tensor `(batch, max_length)` of the cached
                and the new positions.
            attention_mask: Boolean tensor that broadcasts to `(batch, heads,
                new_length, max_length)`: who may attend to whom, in place of
                the causal mask.
            return_attention_scores: Boolean. Whether to return the weights too,
                `(batch, heads, new_length, max_length)`.

        Returns:
            The output and the new cache, and the weights if asked for.
        """
        query, key, value = self.project(inputs)
        key = ops.transpose(key, (0, 1, 3, 2))
        keys = ops.slice_update(cache[0], (0, 0, 0, cache_index), key)
        values = ops.slice_update(cache[1], (0, 0, cache_index, 0), value)
        if attention_mask is None:
            attention_mask = causal_mask(
                query.shape[2], values.shape[2], cache_index
            )
        key = ops.transpose(keys, (0, 1, 3, 2))
        result = self.attend(
            query,
            key,
            values,
            padding_mask,
            attention_mask,
            return_attention_scores=return_attention_scores,
            training=False,
        )
        if return_attention_scores:
            output, scores = result
            return output, (keys, values), scores
        return result, (keys, values)

    def compute_output_shape(self, input_shape):
        return input_shape

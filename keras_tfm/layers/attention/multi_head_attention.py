"""Multi-head attention of any queries to any context.

Shape letters: B batch, H heads, T query length, S key length, D head size.
"""

import keras
from keras import ops

from keras_tfm.layers.attention.projected_attention import ProjectedAttention
from keras_tfm.ops.attention import split_heads
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding


@keras.saving.register_keras_serializable(package="keras_tfm")
class MultiHeadAttention(ProjectedAttention):
    """Attend from each query to all values of a context, with several heads.

    `softmax(Q K^T / sqrt(key_dim)) V` for each head, the heads side by side,
    then one projection back to the width of the query. Time grows
    with target length times source length, and memory with their sum where they
    are long (see `blockwise_from`). For attention of a sequence to
    itself use `MultiHeadSelfAttention`, which projects in one product.

    Masking: `padding_mask`, `attention_mask` and `use_causal_mask` are combined
    with AND; without a `padding_mask` the Keras mask of `value` takes its
    place. A query that may attend nowhere yields zeros before the output
    projection. The inputs and their masks are left as they are.

    Args:
        num_heads: Positive integer. Number of attention heads.
        key_dim: Positive integer. Size of each head for queries and keys.
            Defaults to the width of the query divided by `num_heads`.
        value_dim: Positive integer. Size of each head for values.
            Defaults to `key_dim`.
        dropout: Float in [0, 1). Share of attention weights dropped in
            training. Defaults to `0.0`.
        use_bias: Boolean. Whether the four projections have a bias.
            Defaults to `True`.
        kernel_initializer: Keras initializer of the projections.
            Defaults to `"glorot_uniform"`.
        blockwise_from: Non-negative integer. From this length on (the root of
            target length times source length) the weights are made tile by
            tile and never in memory as a whole, unless they are asked for;
            see `keras_tfm.ops.blockwise_attention`. With `0` always, with
            `None` never. Defaults to `1024`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        query: Float tensor `(batch, target_length, hidden_dim)`.
        value: Float tensor `(batch, source_length, context_dim)`.
        key: Float tensor, as `value`. Defaults to `value`.
        padding_mask: Boolean tensor `(batch, source_length)`; `True` means "is
            a real token".
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            target_length, source_length)`; `True` means "may attend". Of rank
            2 it is `(target_length, source_length)`.
        position_bias: Float tensor that broadcasts to the same shape, added to
            the scores.
        use_causal_mask: Boolean. Hide the future; the last query is aligned
            with the last key. Defaults to `False`.
        return_attention_scores: Boolean. Whether to return the weights too.
            Defaults to `False`.
        training: Boolean. Whether dropout is active.

    Output shape:
        `(batch, target_length, hidden_dim)`; with
        `return_attention_scores=True` also float32
        `(batch, num_heads, target_length, source_length)`, the weights before
        dropout.

    Raises:
        TypeError: If a mask has a floating dtype.
        ValueError: If a size is out of range, or the width of the query does
            not divide by `num_heads` and no `key_dim` is given.

    Example:
        >>> layer = MultiHeadAttention(num_heads=2)
        >>> query = keras.ops.ones((1, 5, 8))
        >>> context = keras.ops.ones((1, 7, 6))
        >>> output, scores = layer(query, context, return_attention_scores=True)
        >>> tuple(output.shape), tuple(scores.shape)
        ((1, 5, 8), (1, 2, 5, 7))

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2.
    """

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = value_shape if key_shape is None else key_shape
        hidden_dim = query_shape[-1]
        key_dim, value_dim = self.head_sizes(hidden_dim)
        keys, values = self.num_heads * key_dim, self.num_heads * value_dim
        self.query = self.build_projection("query", query_shape, [keys])
        self.key = self.build_projection("key", key_shape, [keys])
        self.value = self.build_projection("value", value_shape, [values])
        self.build_output(hidden_dim, value_dim)
        self.built = True

    def call(
        self,
        query,
        value,
        key=None,
        padding_mask=None,
        attention_mask=None,
        position_bias=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        if padding_mask is None:
            padding_mask = combine_masks(
                implicit_mask(value),
                None if key is None else implicit_mask(key),
            )
        query = zero_padding(query, implicit_mask(query))
        query = self._split(self.query(query))
        key, value = self._project(value, key, padding_mask)
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

    def project_context(self, value, key=None, padding_mask=None):
        """Project a context once, for any number of `step`s.

        Args:
            value: Float tensor `(batch, source_length, context_dim)`.
            key: Float tensor, as `value`. Defaults to `value`.
            padding_mask: Boolean tensor `(batch, source_length)`.

        Returns:
            The cache: a pair of keys `(B, H, D, S)`, so that their product
            with a query runs along the positions, and values `(B, H, S, D)`.
        """
        key, value = self._project(value, key, padding_mask)
        return ops.transpose(key, (0, 1, 3, 2)), value

    def step(
        self, query, cache, padding_mask=None, return_attention_scores=False
    ):
        """Attend to a context that `project_context` has projected.

        Args:
            query: Float tensor `(batch, target_length, hidden_dim)`.
            cache: What `project_context` returned.
            padding_mask: Boolean tensor `(batch, source_length)`.
            return_attention_scores: Boolean. Whether to return the weights too.

        Returns:
            The output, or the output and the weights, as `call` does.
        """
        keys, value = cache
        key = ops.transpose(keys, (0, 1, 3, 2))
        query = self._split(self.query(query))
        return self.attend(
            query,
            key,
            value,
            padding_mask,
            return_attention_scores=return_attention_scores,
            training=False,
        )

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        return query_shape

    def _project(self, value, key, padding_mask):
        key = value if key is None else key
        key = self.key(zero_padding(key, padding_mask))
        value = self.value(zero_padding(value, padding_mask))
        return self._split(key), self._split(value)

    def _split(self, sequence):
        return split_heads(sequence, self.num_heads)

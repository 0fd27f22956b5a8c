"""Multi-head attention of a sequence to itself.

Shape letters: B batch, H heads, G heads of keys and values, T query length, S
key length, D head size.
"""

import keras
from keras import ops

from keras_tfm.layers.attention.full_self_attention import FullSelfAttention
from keras_tfm.ops.positions import positions_from


@keras.saving.register_keras_serializable(package="keras_tfm")
class MultiHeadSelfAttention(FullSelfAttention):
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
        num_key_value_heads: Positive integer that divides `num_heads`: so many
            heads of keys and values, each shared by several heads of queries
            (grouped-query attention; with `1` multi-query attention). A cache
            is as much smaller. Defaults to `num_heads`.
        position: Layer for positions within the attention: `RotaryEmbedding`,
            `AlibiBias` or `RelativePositionBias`. Defaults to `None`: positions
            were added to the inputs, if at all.
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
        TypeError: If a mask has a floating dtype, or `position` is no layer for
            positions within the attention.
        ValueError: If a size is out of range, or the width of the inputs does
            not divide by `num_heads` and no `key_dim` is given, or `position`
            is for another number of heads.

    Example:
        >>> layer = MultiHeadSelfAttention(num_heads=2)
        >>> x = keras.ops.ones((1, 5, 8))
        >>> tuple(layer(x, use_causal_mask=True).shape)
        (1, 5, 8)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2;
        [Ainslie et al., 2023](https://arxiv.org/abs/2305.13245) for heads that
        share keys and values.
    """

    def attend_at(
        self,
        query,
        key,
        value,
        query_positions,
        beams=1,
        position_bias=None,
        **kwargs,
    ):
        distance_scores = None
        if self.position is not None and beams == 1:
            distance_scores = self._scores_by_distance(
                ops.shape(query)[2], ops.shape(key)[2], query_positions
            )
        elif self.position is not None:
            key_positions = positions_from(ops.shape(key)[2]) // beams
            position_bias = self.with_scores(
                position_bias, query_positions, key_positions
            )
        return self.attend(
            query,
            key,
            value,
            position_bias=position_bias,
            distance_scores=distance_scores,
            **kwargs,
        )

    def _scores_by_distance(self, num_queries, num_keys, query_positions):
        # From that of the last query and the first key on.
        steps = positions_from(num_queries + num_keys - 1)
        first = query_positions[0] + num_queries - 1
        return self.position.scores(steps - first)

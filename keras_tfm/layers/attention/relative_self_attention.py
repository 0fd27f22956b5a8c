"""Self-attention with vectors that stand for distances.

Shape letters: B batch, H heads, T query length, S key length, D head size.
"""

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.layers.attention.full_self_attention import FullSelfAttention
from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.positions import positions_from
from keras_tfm.ops.relative_attention import relative_scores
from keras_tfm.ops.relative_attention import relative_values


@keras.saving.register_keras_serializable(package="keras_tfm")
class RelativeSelfAttention(FullSelfAttention):
    """Attend to what is there and to how far away it is.

    To each key a trained vector is added that stands for its distance from the
    query, and to each value another. All heads share them. It takes the place
    of `MultiHeadSelfAttention` in `EncoderBlock` and `DecoderBlock` (argument
    `attention`).

    Masking: as `MultiHeadSelfAttention`.

    Args:
        num_heads: Positive integer. Number of attention heads.
        max_distance: Positive integer, in tokens: what is farther away is
            treated as this far. Defaults to `16`.
        key_dim: Positive integer. Size of each head for queries and keys.
            Defaults to the width of the inputs divided by `num_heads`.
        value_dim: Positive integer. Size of each head for values.
            Defaults to `key_dim`.
        dropout: Float in [0, 1). Share of attention weights dropped in
            training. Defaults to `0.0`.
        use_bias: Boolean. Whether the projections have a bias.
            Defaults to `True`.
        kernel_initializer: Keras initializer of the projections and of the
            vectors of the distances. Defaults to `"glorot_uniform"`.
        num_key_value_heads: Positive integer that divides `num_heads`.
            Defaults to `num_heads`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        padding_mask: Boolean tensor `(batch, length)`; `True` means "is a real
            token".
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            length, length)`; `True` means "may attend".
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
        ValueError: If a size is out of range, or a `position` is given.

    Example:
        >>> layer = RelativeSelfAttention(num_heads=2, max_distance=3)
        >>> x = keras.ops.ones((1, 5, 8))
        >>> tuple(layer(x, use_causal_mask=True).shape)
        (1, 5, 8)

    Reference:
        [Shaw et al., 2018](https://arxiv.org/abs/1803.02155), section 3.
    """

    def __init__(
        self, num_heads, max_distance=16, *args, position=None, **kwargs
    ):
        if position is not None:
            raise ValueError(
                "`RelativeSelfAttention` has positions of its own. Received: "
                f"position={position!r}. Give it to `MultiHeadSelfAttention`."
            )
        # All weights are in memory: the distances are looked up for each.
        super().__init__(num_heads, *args, **kwargs, blockwise_from=None)
        self.max_distance = check_positive_int("max_distance", max_distance)

    def build(self, input_shape):
        super().build(input_shape)
        self.key_distances, self.value_distances = (
            self.add_weight(
                shape=(2 * self.max_distance + 1, size),
                initializer=self.kernel_initializer.clone(),
                name=name,
            )
            for name, size in (
                ("key_distances", self._key_size),
                ("value_distances", self._value_size),
            )
        )

    def attend_at(
        self,
        query,
        key,
        value,
        query_positions,
        beams=1,
        padding_mask=None,
        attention_mask=None,
        position_bias=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        lengths = ops.shape(query)[2], ops.shape(key)[2]
        masks = self.expanded_masks(
            padding_mask, attention_mask, lengths, use_causal_mask
        )
        scores = relative_scores(
            query,
            ops.cast(self.key_distances, query.dtype),
            query_positions,
            positions_from(lengths[1]) // beams,
        )
        if position_bias is not None:
            scores = ops.cast(scores, "float32") + position_bias
        used = []

        def drop(weights):
            used.append(self.drop(weights, training=training))
            return used[0]

        heads, weights = dot_product_attention(
            query, key, value, combine_masks(*masks), scores, drop
        )
        (by_key,) = used
        if beams > 1:
            # Of the alternatives at a position a beam sees its own.
            shape = (*ops.shape(by_key)[:3], -1, beams)
            by_key = ops.sum(ops.reshape(by_key, shape), axis=-1)
        heads = heads + relative_values(
            by_key,
            ops.cast(self.value_distances, value.dtype),
            query_positions,
        )
        output = self.attention_output(join_heads(heads))
        return (output, weights) if return_attention_scores else output

    def get_config(self):
        config = super().get_config()
        for name in ("blockwise_from", "position"):
            config.pop(name)
        return {**config, "max_distance": self.max_distance}

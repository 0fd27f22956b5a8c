"""One block of an encoder: self-attention and a feed-forward network."""

import keras

from keras_tfm.layers.blocks.parts import BlockParts
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding


@keras.saving.register_keras_serializable(package="keras_tfm")
class EncoderBlock(BlockParts):
    """Mix the positions of a sequence, then work on each of them.

    Self-attention and a feed-forward network, each within a residual
    connection with dropout and layer normalisation. With
    `use_causal_mask=True` it is the block of a decoder-only model.

    Masking: `padding_mask`, `attention_mask` and `use_causal_mask` are combined
    with AND; without a `padding_mask` the Keras mask of the inputs takes its
    place. Padded positions are set to 0 on the way in, so that what they hold
    reaches no real position. The Keras mask is passed on.

    Args:
        num_heads: Positive integer. Number of attention heads.
        intermediate_dim: Positive integer. Width of the feed-forward network.
        activation: Keras activation of the feed-forward network.
            Defaults to `"relu"`.
        dropout: Float in [0, 1). Share of each part's output dropped in
            training. Defaults to `0.0`.
        attention_dropout: Float in [0, 1). Share of attention weights dropped
            in training. Defaults to `0.0`.
        activation_dropout: Float in [0, 1). Share of intermediate values of the
            feed-forward network dropped in training. Defaults to `0.0`.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`
            (`torch.nn` and KerasHub default to post-norm).
        layer_norm_epsilon: Positive float. Defaults to `1e-6`.
        use_bias: Boolean. Whether the projections of the attention have a bias.
            Defaults to `True`.
        attention: Self-attention layer to use in place of `num_heads`,
            `attention_dropout` and `use_bias`.
        feed_forward: Layer to use in place of `intermediate_dim`, `activation`
            and `activation_dropout`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        padding_mask: Boolean tensor `(batch, length)`; `True` means "is a real
            token".
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            length, length)`; `True` means "may attend".
        use_causal_mask: Boolean. Hide the future. Defaults to `False`.
        return_attention_scores: Boolean. Whether to return the weights too.
            Defaults to `False`.
        training: Boolean. Whether dropout is active.

    Output shape:
        `(batch, length, hidden_dim)`; with `return_attention_scores=True` also
        `(batch, num_heads, length, length)`.

    Raises:
        ValueError: If neither or both of a part and its size are given, or a
            size is out of range.

    Example:
        >>> block = EncoderBlock(num_heads=2, intermediate_dim=16)
        >>> tuple(block(keras.ops.ones((1, 5, 8))).shape)
        (1, 5, 8)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1.
        The paper is post-norm with no attention or activation dropout.
    """

    def build(self, inputs_shape):
        self.self_attention.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.built = True

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

        def attend(x):
            return self.self_attention.sublayer(
                x,
                padding_mask=padding_mask,
                attention_mask=attention_mask,
                use_causal_mask=use_causal_mask,
                return_attention_scores=True,
                training=training,
            )

        x = zero_padding(inputs, padding_mask)
        x, scores = self.self_attention.connect(x, attend, training)
        x = self.feed_forward(x, training=training)
        return (x, scores) if return_attention_scores else x

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

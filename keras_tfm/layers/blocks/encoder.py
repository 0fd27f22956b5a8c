"""A stack of encoder blocks."""

import keras

from keras_tfm.layers.blocks.encoder_block import EncoderBlock
from keras_tfm.layers.blocks.stack import Stack
from keras_tfm.ops.masks import implicit_mask


@keras.saving.register_keras_serializable(package="keras_tfm")
class Encoder(Stack):
    """Encode a sequence of vectors with a stack of `EncoderBlock`s.

    Pre-norm stacks end with a layer normalisation, post-norm stacks with the
    norm of their last block.

    Masking: as `EncoderBlock`, in every block. The Keras mask is passed on.

    Args:
        num_layers: Positive integer. Number of blocks.
        num_heads: Positive integer. Number of attention heads.
        intermediate_dim: Positive integer. Width of the feed-forward networks.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`.
        layer_norm_epsilon: Positive float. Defaults to `1e-6`.
        blocks: List of blocks to use in place of the sizes. The same block
            twice shares its weights.
        **kwargs: Other arguments of `EncoderBlock` (`activation`, `dropout`,
            `attention_dropout`, `activation_dropout`, `use_bias`) and of
            `keras.layers.Layer`, such as `name` or `dtype`.

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
        a tuple with the weights of each block,
        `(batch, num_heads, length, length)`.

    Raises:
        ValueError: If neither or both of `num_layers` and `blocks` are given,
            or a size is out of range.

    Example:
        >>> encoder = Encoder(num_layers=2, num_heads=2, intermediate_dim=16)
        >>> tuple(encoder(keras.ops.ones((1, 5, 8))).shape)
        (1, 5, 8)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1.
    """

    block_class = EncoderBlock

    def build(self, inputs_shape):
        self.build_blocks(inputs_shape)
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
        x, scores = inputs, []
        for block in self.blocks:
            x, block_scores = block(
                x,
                padding_mask=padding_mask,
                attention_mask=attention_mask,
                use_causal_mask=use_causal_mask,
                return_attention_scores=True,
                training=training,
            )
            scores.append(block_scores)
        x = self.finish(x)
        return (x, tuple(scores)) if return_attention_scores else x

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

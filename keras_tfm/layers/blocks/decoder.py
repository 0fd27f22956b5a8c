"""A stack of decoder blocks."""

import keras

from keras_tfm.layers.blocks.decoder_block import DecoderBlock
from keras_tfm.layers.blocks.stack import Stack
from keras_tfm.ops.masks import implicit_mask


@keras.saving.register_keras_serializable(package="keras_tfm")
class Decoder(Stack):
    """Decode a sequence of vectors with a stack of `DecoderBlock`s.

    Pre-norm stacks end with a layer normalisation, post-norm stacks with the
    norm of their last block.

    Masking: as `DecoderBlock`, in every block. The Keras mask of the inputs is
    passed on.

    Args:
        num_layers: Positive integer. Number of blocks.
        num_heads: Positive integer. Number of attention heads.
        intermediate_dim: Positive integer. Width of the feed-forward networks.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`.
        layer_norm_epsilon: Positive float. Defaults to `1e-6`.
        blocks: List of blocks to use in place of the sizes. The same block
            twice shares its weights.
        **kwargs: Other arguments of `DecoderBlock` (`activation`, `dropout`,
            `attention_dropout`, `activation_dropout`, `use_bias`) and of
            `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, target_length, hidden_dim)`.
        context: Float tensor `(batch, source_length, context_dim)`, or `None`
            for a decoder-only model.
        padding_mask: Boolean tensor `(batch, target_length)`; `True` means "is
            a real token".
        context_padding_mask: Boolean tensor `(batch, source_length)`.
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            target_length, target_length)`; `True` means "may attend".
        context_attention_mask: Boolean tensor that broadcasts to `(batch,
            heads, target_length, source_length)`.
        use_causal_mask: Boolean. Hide the future. Defaults to `True`.
        return_attention_scores: Boolean. Whether to return the weights too.
            Defaults to `False`.
        training: Boolean. Whether dropout is active.

    Output shape:
        `(batch, target_length, hidden_dim)`; with
        `return_attention_scores=True` also two tuples with the weights of each
        block: of the self-attention, and of the cross-attention (empty without
        a context).

    Raises:
        ValueError: If neither or both of `num_layers` and `blocks` are given,
            or a size is out of range.

    Example:
        >>> decoder = Decoder(num_layers=2, num_heads=2, intermediate_dim=16)
        >>> x, context = keras.ops.ones((1, 5, 8)), keras.ops.ones((1, 7, 8))
        >>> tuple(decoder(x, context).shape)
        (1, 5, 8)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1.
    """

    block_class = DecoderBlock

    def build(self, inputs_shape, context_shape=None):
        self.build_blocks(inputs_shape, context_shape)
        self.built = True

    def call(
        self,
        inputs,
        context=None,
        padding_mask=None,
        context_padding_mask=None,
        attention_mask=None,
        context_attention_mask=None,
        use_causal_mask=True,
        return_attention_scores=False,
        training=None,
    ):
        if padding_mask is None:
            padding_mask = implicit_mask(inputs)
        if context is not None and context_padding_mask is None:
            context_padding_mask = implicit_mask(context)
        x, scores, cross_scores = inputs, [], []
        for block in self.blocks:
            x, own, *cross = block(
                x,
                context,
                padding_mask=padding_mask,
                context_padding_mask=context_padding_mask,
                attention_mask=attention_mask,
                context_attention_mask=context_attention_mask,
                use_causal_mask=use_causal_mask,
                return_attention_scores=True,
                training=training,
            )
            scores.append(own)
            cross_scores.extend(cross)
        x = self.finish(x)
        if return_attention_scores:
            return x, tuple(scores), tuple(cross_scores)
        return x

    def initial_cache(
        self,
        batch_size,
        max_length,
        context=None,
        context_padding_mask=None,
        num_beams=1,
    ):
        """Make the cache of every block, see `DecoderBlock.initial_cache`."""
        return tuple(
            block.initial_cache(
                batch_size, max_length, context, context_padding_mask, num_beams
            )
            for block in self.blocks
        )

    def grow_cache(self, cache, max_length, num_beams=1):
        """Make room for more target tokens; what is cached stays."""
        return tuple(
            block.grow_cache(block_cache, max_length, num_beams)
            for block, block_cache in zip(self.blocks, cache, strict=True)
        )

    def step(
        self,
        inputs,
        cache,
        cache_index,
        context_padding_mask=None,
        ancestors=None,
        return_attention_scores=False,
    ):
        """Decode the next positions; equal to `call` at these positions.

        Args:
            inputs: Float tensor `(batch, new_length, hidden_dim)`.
            cache: What `initial_cache` or the step before returned.
            cache_index: Integer or scalar tensor: how many positions the cache
                holds.
            context_padding_mask: Boolean tensor `(batch, source_length)`.
            ancestors: Integer tensor `(batch, new_length, max_length)`: the new
                positions are alternatives at one, see
                `keras_tfm.ops.cache_slots`.
            return_attention_scores: Boolean. Whether to return the weights too.

        Returns:
            The output and the new cache, and the weights if asked for, as
            `call` returns them.
        """
        x, caches, scores, cross_scores = inputs, [], [], []
        for block, block_cache in zip(self.blocks, cache, strict=True):
            x, new_cache, own, *cross = block.step(
                x,
                block_cache,
                cache_index,
                context_padding_mask,
                ancestors,
                return_attention_scores=True,
            )
            caches.append(new_cache)
            scores.append(own)
            cross_scores.extend(cross)
        x = self.finish(x)
        if return_attention_scores:
            return x, tuple(caches), tuple(scores), tuple(cross_scores)
        return x, tuple(caches)

    def compute_output_shape(self, inputs_shape, context_shape=None):
        return inputs_shape

"""One block of a decoder: self-attention, cross-attention, feed-forward."""

import keras

from keras_tfm.layers.attention.multi_head_attention import MultiHeadAttention
from keras_tfm.layers.blocks.parts import BlockParts
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding


@keras.saving.register_keras_serializable(package="keras_tfm")
class DecoderBlock(BlockParts):
    """Mix the past positions, look at a context, then work on each position.

    Causal self-attention, attention to a context (an encoder's output) and a
    feed-forward network, each within a residual connection with dropout and
    layer normalisation. Called without a context it has no cross-attention: a
    block of a decoder-only model.

    Masking: the future is hidden unless `use_causal_mask=False`. `padding_mask`
    covers the inputs and `context_padding_mask` the context; without them the
    Keras masks of the inputs and the context take their place. Padded positions
    are set to 0 on the way in, so that what they hold reaches no real position.
    The Keras mask of the inputs is passed on.

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
        attention: Self-attention layer, and
        cross_attention: Attention layer, to use in place of `num_heads`,
            `attention_dropout` and `use_bias`.
        feed_forward: Layer to use in place of `intermediate_dim`, `activation`
            and `activation_dropout`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, target_length, hidden_dim)`.
        context: Float tensor `(batch, source_length, context_dim)`, or `None`.
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
        `return_attention_scores=True` also the weights of the self-attention
        `(batch, num_heads, target_length, target_length)` and, with a context,
        of the cross-attention
        `(batch, num_heads, target_length, source_length)`.

    Raises:
        ValueError: If neither or both of a part and its size are given, or a
            size is out of range.

    Example:
        >>> block = DecoderBlock(num_heads=2, intermediate_dim=16)
        >>> x, context = keras.ops.ones((1, 5, 8)), keras.ops.ones((1, 7, 8))
        >>> tuple(block(x, context).shape)
        (1, 5, 8)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1.
        The paper is post-norm with no attention or activation dropout.
    """

    def __init__(
        self,
        num_heads=None,
        intermediate_dim=None,
        *,
        attention=None,
        cross_attention=None,
        **kwargs,
    ):
        super().__init__(
            num_heads, intermediate_dim, attention=attention, **kwargs
        )
        if cross_attention is None and num_heads is not None:
            cross_attention = self._attention(
                MultiHeadAttention, "cross_attention"
            )
        elif num_heads is not None:
            raise ValueError(
                "Give either `num_heads` or a ready-made `cross_attention`. "
                f"Received: num_heads={num_heads!r}, "
                f"cross_attention={cross_attention!r}."
            )
        self.cross_attention = None
        if cross_attention is not None:
            self.cross_attention = self._within_residual(
                cross_attention, "cross_attention"
            )

    def build(self, inputs_shape, context_shape=None):
        self.self_attention.build(inputs_shape)
        if context_shape is None:
            # Without a context there is nothing to attend to, and no weights.
            self.cross_attention = None
        elif self.cross_attention is None:
            raise ValueError(
                f"`{self.name}` was made with a ready-made `attention` only "
                "and cannot attend to a context. Pass `cross_attention` too."
            )
        else:
            self.cross_attention.build(inputs_shape, context_shape)
        self.feed_forward.build(inputs_shape)
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
        self._check_context(context)
        if padding_mask is None:
            padding_mask = implicit_mask(inputs)
        if context is not None and context_padding_mask is None:
            context_padding_mask = implicit_mask(context)

        def attend(x):
            return self.self_attention.sublayer(
                x,
                padding_mask=padding_mask,
                attention_mask=attention_mask,
                use_causal_mask=use_causal_mask,
                return_attention_scores=True,
                training=training,
            )

        def attend_to_context(x):
            return self.cross_attention.sublayer(
                x,
                context,
                padding_mask=context_padding_mask,
                attention_mask=context_attention_mask,
                return_attention_scores=True,
                training=training,
            )

        x = zero_padding(inputs, padding_mask)
        x, *scores = self.self_attention.connect(x, attend, training)
        if context is not None:
            x, cross_scores = self.cross_attention.connect(
                x, attend_to_context, training
            )
            scores.append(cross_scores)
        x = self.feed_forward(x, training=training)
        return (x, *scores) if return_attention_scores else x

    def initial_cache(
        self,
        batch_size,
        max_length,
        context=None,
        context_padding_mask=None,
        num_beams=1,
    ):
        """Make the cache for `step`; the context is projected here, once.

        Args:
            batch_size: Integer or scalar tensor.
            max_length: Integer, the most target tokens that it will hold.
            context: Float tensor `(batch, source_length, context_dim)`, or
                `None`.
            context_padding_mask: Boolean tensor `(batch, source_length)`.
            num_beams: Integer, the alternatives at each position.
                Defaults to `1`.

        Returns:
            A dictionary of the caches of the parts.
        """
        attention = self.self_attention.sublayer
        cache = {
            "self": attention.initial_cache(batch_size, max_length, num_beams)
        }
        if context is not None:
            cache["cross"] = self.cross_attention.sublayer.project_context(
                context, padding_mask=context_padding_mask
            )
        return cache

    def grow_cache(self, cache, max_length, num_beams=1):
        """Make room for more target tokens; what is cached stays."""
        attention = self.self_attention.sublayer
        own = attention.grow_cache(cache["self"], max_length, num_beams)
        return {**cache, "self": own}

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

        def attend(x):
            return self.self_attention.sublayer.step(
                x,
                cache["self"],
                cache_index,
                ancestors=ancestors,
                return_attention_scores=True,
            )

        def attend_to_context(x):
            return self.cross_attention.sublayer.step(
                x,
                cache["cross"],
                context_padding_mask,
                return_attention_scores=True,
            )

        x, own, *scores = self.self_attention.connect(inputs, attend, False)
        new_cache = {**cache, "self": own}
        if "cross" in cache:
            x, cross_scores = self.cross_attention.connect(
                x, attend_to_context, False
            )
            scores.append(cross_scores)
        x = self.feed_forward(x, training=False)
        if return_attention_scores:
            return x, new_cache, *scores
        return x, new_cache

    def compute_output_shape(self, inputs_shape, context_shape=None):
        return inputs_shape

    def get_config(self):
        given = None
        if self.num_heads is None and self.cross_attention is not None:
            given = keras.saving.serialize_keras_object(
                self.cross_attention.sublayer
            )
        return {**super().get_config(), "cross_attention": given}

    def _check_context(self, context):
        if (context is None) != (self.cross_attention is None):
            had, has = "with", "without"
            if self.cross_attention is None:
                had, has = has, had
            raise ValueError(
                f"`{self.name}` was first called {had} a context and is now "
                f"called {has} one. Use a block of its own for each."
            )

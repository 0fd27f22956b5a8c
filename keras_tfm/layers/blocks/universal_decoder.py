"""A decoder whose depth is shared: one block, taken several times."""

import keras
from keras import ops

from keras_tfm.layers.blocks.decoder_block import DecoderBlock
from keras_tfm.layers.blocks.universal_stack import UniversalStack
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding
from keras_tfm.ops.positions import positions_from


@keras.saving.register_keras_serializable(package="keras_tfm")
class UniversalDecoder(UniversalStack):
    """Decode a sequence with one `DecoderBlock` that is used again and again.

    Before each step the signal of the positions and the signal of the step are
    added to the state: the inputs come without positions. With `halting` each
    position decides how many steps count for it; without, all do. Pre-norm ends
    with a layer normalisation, as `Decoder`.

    Masking: as `DecoderBlock`, in every step. The Keras mask of the inputs is
    passed on.

    Args:
        num_steps: Positive integer. Steps, at most with `halting`.
        num_heads: Positive integer. Number of attention heads.
        intermediate_dim: Positive integer. Width of the feed-forward network.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`
            (the paper is post-norm).
        layer_norm_epsilon: Positive float. Defaults to `1e-6`.
        block: Block to use in place of the sizes.
        position: See `UniversalEncoder`.
        step_signal: See `UniversalEncoder`.
        halting: `AdaptiveHalting`. Defaults to `None`: all steps count.
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
        positions: Integer tensor `(target_length,)` or `(batch,
            target_length)`, for packed rows. Defaults to 0, 1, …
        use_causal_mask: Boolean. Hide the future. Defaults to `True`.
        return_attention_scores: Boolean. Whether to return the weights too.
            Defaults to `False`.
        return_ponder_times: Boolean. Whether to return them too, float32
            `(batch, target_length)`: see `HaltingRun`; the number of steps
            without `halting`. Defaults to `False`.
        training: Boolean. Whether dropout is active, and the ponder cost is
            added to the losses.

    Output shape:
        `(batch, target_length, hidden_dim)`; with
        `return_attention_scores=True` also two tuples with the weights of each
        step: of the self-attention, and of the cross-attention (empty without
        a context); with `return_ponder_times=True` also `(batch,
        target_length)`.

    Raises:
        ValueError: If neither or both of the sizes and `block` are given, or a
            size is out of range.

    Example:
        >>> decoder = UniversalDecoder(3, num_heads=2, intermediate_dim=16)
        >>> x, context = keras.ops.ones((1, 5, 8)), keras.ops.ones((1, 7, 8))
        >>> tuple(decoder(x, context).shape)
        (1, 5, 8)

    Reference:
        [Dehghani et al., 2019](https://arxiv.org/abs/1807.03819), section 2.1.
        The paper counts steps from 1; here, as in Tensor2Tensor, from 0.
    """

    block_class = DecoderBlock

    def build(self, inputs_shape, context_shape=None):
        self.build_parts(inputs_shape, context_shape)
        self.built = True

    def call(
        self,
        inputs,
        context=None,
        padding_mask=None,
        context_padding_mask=None,
        attention_mask=None,
        context_attention_mask=None,
        positions=None,
        use_causal_mask=True,
        return_attention_scores=False,
        return_ponder_times=False,
        training=None,
    ):
        if padding_mask is None:
            padding_mask = implicit_mask(inputs)
        if context is not None and context_padding_mask is None:
            context_padding_mask = implicit_mask(context)
        if positions is None:
            positions = positions_from(ops.shape(inputs)[1])

        def take_step(x, step):
            return self.block(
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

        x, scores, run = self.deepen(
            zero_padding(inputs, padding_mask), take_step, positions
        )
        self.add_ponder_cost(run, padding_mask, training)
        results = [x]
        if return_attention_scores:
            results += _by_kind(scores)
        if return_ponder_times:
            results.append(self.ponder_times(run, x))
        return tuple(results) if len(results) > 1 else x

    def initial_cache(
        self,
        batch_size,
        max_length,
        context=None,
        context_padding_mask=None,
        num_beams=1,
    ):
        """Make the cache for `step`, see `DecoderBlock.initial_cache`.

        Returns:
            A dictionary of `steps`, the cache of each step's self-attention,
            and, with a context, `cross`: its keys and values are the same in
            all steps.
        """
        first = self.block.initial_cache(
            batch_size, max_length, context, context_padding_mask, num_beams
        )
        # Zeros of their own: a step writes into its cache alone.
        others = [
            self.block.initial_cache(
                batch_size, max_length, num_beams=num_beams
            )["self"]
            for _ in range(self.num_steps - 1)
        ]
        shared = {name: part for name, part in first.items() if name != "self"}
        return {**shared, "steps": (first["self"], *others)}

    def grow_cache(self, cache, max_length, num_beams=1):
        """Make room for more target tokens; what is cached stays."""
        return {
            **cache,
            "steps": tuple(
                self.block.grow_cache({"self": own}, max_length, num_beams)[
                    "self"
                ]
                for own in cache["steps"]
            ),
        }

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
        length = ops.shape(inputs)[1] if ancestors is None else 1
        positions = positions_from(length, cache_index)
        shared = {name: part for name, part in cache.items() if name != "steps"}

        def take_step(x, step):
            return self.block.step(
                x,
                {**shared, "self": cache["steps"][step]},
                cache_index,
                context_padding_mask,
                ancestors,
                return_attention_scores=True,
            )

        x, rests, _ = self.deepen(inputs, take_step, positions)
        new_cache = {
            **shared,
            "steps": tuple(step_cache["self"] for step_cache, *_ in rests),
        }
        if return_attention_scores:
            return x, new_cache, *_by_kind([scores for _, *scores in rests])
        return x, new_cache

    def compute_output_shape(self, inputs_shape, context_shape=None):
        return inputs_shape


def _by_kind(scores):
    """Turn a list of (own,) or (own, cross), one a step, into two tuples."""
    return tuple(own for own, *_ in scores), tuple(
        weights for _, *cross in scores for weights in cross
    )

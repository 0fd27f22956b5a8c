"""An encoder whose depth is shared: one block, taken several times."""

import keras
from keras import ops

from keras_tfm.layers.blocks.encoder_block import EncoderBlock
from keras_tfm.layers.blocks.universal_stack import UniversalStack
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding
from keras_tfm.ops.positions import positions_from


@keras.saving.register_keras_serializable(package="keras_tfm")
class UniversalEncoder(UniversalStack):
    """Encode a sequence with one `EncoderBlock` that is used again and again.

    Before each step the signal of the positions and the signal of the step are
    added to the state: the inputs come without positions. With `halting` each
    position decides how many steps count for it; without, all do. Pre-norm ends
    with a layer normalisation, as `Encoder`.

    Masking: as `EncoderBlock`, in every step. The Keras mask is passed on.

    Args:
        num_steps: Positive integer. Steps, at most with `halting`.
        num_heads: Positive integer. Number of attention heads.
        intermediate_dim: Positive integer. Width of the feed-forward network.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`
            (the paper is post-norm).
        layer_norm_epsilon: Positive float. Defaults to `1e-6`.
        block: Block to use in place of the sizes.
        position: Layer that adds the signal of the positions. Defaults to
            `PositionalEncoding()`.
        step_signal: Layer that adds the signal of the step, called with the
            number of the step as the position, from 0. Defaults to
            `PositionalEncoding()`.
        halting: `AdaptiveHalting`. Defaults to `None`: all steps count.
        **kwargs: Other arguments of `EncoderBlock` (`activation`, `dropout`,
            `attention_dropout`, `activation_dropout`, `use_bias`) and of
            `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        padding_mask: Boolean tensor `(batch, length)`; `True` means "is a real
            token".
        attention_mask: Boolean tensor that broadcasts to `(batch, heads,
            length, length)`; `True` means "may attend".
        positions: Integer tensor `(length,)` or `(batch, length)`, for packed
            rows. Defaults to 0, 1, …
        use_causal_mask: Boolean. Hide the future. Defaults to `False`.
        return_attention_scores: Boolean. Whether to return the weights too.
            Defaults to `False`.
        return_ponder_times: Boolean. Whether to return them too, float32
            `(batch, length)`: see `HaltingRun`; the number of steps without
            `halting`. Defaults to `False`.
        training: Boolean. Whether dropout is active, and the ponder cost is
            added to the losses.

    Output shape:
        `(batch, length, hidden_dim)`; with `return_attention_scores=True` also
        a tuple with the weights of each step, `(batch, num_heads, length,
        length)`; with `return_ponder_times=True` also `(batch, length)`.

    Raises:
        ValueError: If neither or both of the sizes and `block` are given, or a
            size is out of range.

    Example:
        >>> encoder = UniversalEncoder(3, num_heads=2, intermediate_dim=16)
        >>> tuple(encoder(keras.ops.ones((1, 5, 8))).shape)
        (1, 5, 8)

    Reference:
        [Dehghani et al., 2019](https://arxiv.org/abs/1807.03819), section 2.1.
        The paper counts steps from 1; here, as in Tensor2Tensor, from 0.
    """

    block_class = EncoderBlock

    def build(self, inputs_shape):
        self.build_parts(inputs_shape)
        self.built = True

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        positions=None,
        use_causal_mask=False,
        return_attention_scores=False,
        return_ponder_times=False,
        training=None,
    ):
        if padding_mask is None:
            padding_mask = implicit_mask(inputs)
        if positions is None:
            positions = positions_from(ops.shape(inputs)[1])

        def take_step(x, step):
            return self.block(
                x,
                padding_mask=padding_mask,
                attention_mask=attention_mask,
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
            results.append(tuple(weights for (weights,) in scores))
        if return_ponder_times:
            results.append(self.ponder_times(run, x))
        return tuple(results) if len(results) > 1 else x

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

"""The encoder-decoder Transformer whose depth is shared."""

import keras

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_divisible
from keras_tfm.checks import check_positive_int
from keras_tfm.layers.blocks.adaptive_halting import ACCUMULATIONS
from keras_tfm.layers.blocks.adaptive_halting import AdaptiveHalting
from keras_tfm.layers.blocks.universal_decoder import UniversalDecoder
from keras_tfm.layers.blocks.universal_encoder import UniversalEncoder
from keras_tfm.layers.position.positional_encoding import PositionalEncoding
from keras_tfm.models.encoder_decoder import EncoderDecoder
from keras_tfm.models.token_layers import make_token_layers


@keras.saving.register_keras_serializable(package="keras_tfm")
class UniversalTransformer(EncoderDecoder):
    """Predict each token of a target sequence, thinking longer where needed.

    As `Transformer`, but the encoder takes one block `num_steps` times, and the
    decoder another one: see `UniversalEncoder` and `UniversalDecoder`. The
    signals of position and step are added before each step. With `halting` each
    position decides how many steps count for it, and the mean ponder times of
    both sides are added to the loss in training.

    Masking: as `Transformer`.

    Args:
        source_vocabulary_size: Positive integer.
        target_vocabulary_size: Positive integer. Defaults to
            `source_vocabulary_size`.
        num_steps: Positive integer. Steps of the encoder, and of the decoder
            unless `num_decoder_steps` is given; at most, with `halting`.
            Defaults to `6`.
        hidden_dim: Positive integer. Defaults to `512`.
        intermediate_dim: Positive integer. Width of the feed-forward networks.
            Defaults to `2048`.
        num_heads: Positive integer. Defaults to `8`.
        num_decoder_steps: Positive integer. Defaults to `num_steps`.
        halting: `None` (all steps count), `"graves"` or `"tensor2tensor"`: the
            `accumulation` of `AdaptiveHalting`. Defaults to `None`.
        halting_threshold: Float in (0, 1). Defaults to `0.99`.
        ponder_cost: Float of at least 0, the weight of the ponder times in the
            loss. Defaults to `0.01`.
        activation: Keras activation. Defaults to `"relu"`.
        dropout: Float in [0, 1). Share dropped of the embeddings and of each
            part's output. Defaults to `0.1`.
        attention_dropout: Float in [0, 1). Share of attention weights dropped.
            Defaults to `0.0`.
        activation_dropout: Float in [0, 1). Share of intermediate values
            dropped. Defaults to `0.0`.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`
            (the paper is post-norm).
        layer_norm_epsilon: Positive float. Defaults to `1e-6`.
        use_bias: Boolean. Whether the attention has biases.
            Defaults to `False`.
        tie_embeddings: See `Transformer`. Defaults to `"decoder"`.
        position_layout: See `PositionalEncoding`. Defaults to `"concat"`.
        position_denominator: See `PositionalEncoding`.
            Defaults to `"tensor2tensor"`.
        pad_id: Integer, the id of padding. Defaults to `0`.
        **kwargs: Passed to `keras.Model`, such as `name`; and `dtype`, a policy
            for every layer.

    Call arguments:
        inputs: Dictionary of two integer tensors: `source_ids` `(batch,
            source_length)` and `target_ids` `(batch, target_length)`.

    Output shape:
        Logits `(batch, target_length, target_vocabulary_size)`.

    Raises:
        ValueError: If a size is out of range, `hidden_dim` does not divide by
            `num_heads`, or `tie_embeddings="all"` with two vocabularies.

    Example:
        >>> model = UniversalTransformer(
        ...     11, num_steps=3, hidden_dim=8, intermediate_dim=16, num_heads=2
        ... )
        >>> ids = keras.ops.ones((1, 5), "int32")
        >>> tuple(model({"source_ids": ids, "target_ids": ids}).shape)
        (1, 5, 11)

    Reference:
        [Dehghani et al., 2019](https://arxiv.org/abs/1807.03819), section 2.
    """

    def __init__(  # noqa: PLR0913 (a model's sizes are one flat list)
        self,
        source_vocabulary_size,
        target_vocabulary_size=None,
        num_steps=6,
        hidden_dim=512,
        intermediate_dim=2048,
        num_heads=8,
        num_decoder_steps=None,
        halting=None,
        halting_threshold=0.99,
        ponder_cost=0.01,
        activation="relu",
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        normalize_first=True,
        layer_norm_epsilon=1e-6,
        use_bias=False,
        tie_embeddings="decoder",
        position_layout="concat",
        position_denominator="tensor2tensor",
        pad_id=0,
        dtype=None,
        **kwargs,
    ):
        if target_vocabulary_size is None:
            target_vocabulary_size = source_vocabulary_size
        if num_decoder_steps is None:
            num_decoder_steps = num_steps
        check_positive_int("num_heads", num_heads)
        check_positive_int("hidden_dim", hidden_dim)
        check_divisible("hidden_dim", hidden_dim, "num_heads", num_heads)
        check_choice("halting", halting, (None, *ACCUMULATIONS))
        policy = keras.dtype_policies.get(
            dtype or keras.config.dtype_policy().name
        )

        # --- Parts ---
        token_layers = make_token_layers(
            source_vocabulary_size,
            target_vocabulary_size,
            hidden_dim,
            dropout,
            tie_embeddings,
            pad_id,
            policy,
        )

        def signal(name):
            return PositionalEncoding(
                position_layout, position_denominator, dtype=policy, name=name
            )

        def stack(kind, steps, name):
            return kind(
                steps,
                num_heads,
                intermediate_dim,
                position=signal("position"),
                step_signal=signal("step_signal"),
                halting=halting
                and AdaptiveHalting(
                    halting_threshold,
                    ponder_cost,
                    halting,
                    dtype=policy,
                    name="halting",
                ),
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                activation_dropout=activation_dropout,
                normalize_first=normalize_first,
                layer_norm_epsilon=layer_norm_epsilon,
                use_bias=use_bias,
                dtype=policy,
                name=name,
            )

        encoder = stack(UniversalEncoder, num_steps, "encoder")
        decoder = stack(UniversalDecoder, num_decoder_steps, "decoder")

        # --- Config ---
        arguments = {
            "source_vocabulary_size": source_vocabulary_size,
            "target_vocabulary_size": target_vocabulary_size,
            "num_steps": num_steps,
            "hidden_dim": hidden_dim,
            "intermediate_dim": intermediate_dim,
            "num_heads": num_heads,
            "num_decoder_steps": num_decoder_steps,
            "halting": halting,
            "halting_threshold": halting_threshold,
            "ponder_cost": ponder_cost,
            "activation": keras.activations.serialize(
                keras.activations.get(activation)
            ),
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "normalize_first": normalize_first,
            "layer_norm_epsilon": layer_norm_epsilon,
            "use_bias": use_bias,
            "tie_embeddings": tie_embeddings,
            "position_layout": position_layout,
            "position_denominator": position_denominator,
            "pad_id": pad_id,
        }

        # --- Graph ---
        super().__init__(
            token_layers,
            encoder,
            decoder,
            policy=policy,
            arguments=arguments,
            **kwargs,
        )

    def stack_arguments(self, positions):
        """Hand the positions on: they are added before each step."""
        return {"positions": positions}

    def ponder_times(self, source_ids, target_ids):
        """Return how long each token was thought about, without dropout.

        Args:
            source_ids: Integer tensor `(batch, source_length)`.
            target_ids: Integer tensor `(batch, target_length)`, what the
                decoder reads.

        Returns:
            A dictionary of `encoder` `(batch, source_length)` and `decoder`
            `(batch, target_length)`, float32: see `HaltingRun`.
        """
        source_mask = self.find_tokens(source_ids)
        context, encoder = self.encoder(
            self.source_embedding(source_ids),
            padding_mask=source_mask,
            return_ponder_times=True,
            training=False,
        )
        _, decoder = self.decoder(
            self.target_embedding(target_ids),
            context,
            padding_mask=self.find_tokens(target_ids),
            context_padding_mask=source_mask,
            return_ponder_times=True,
            training=False,
        )
        return {"encoder": encoder, "decoder": decoder}

"""The encoder-decoder Transformer as one functional model.

Shape letters: B batch, T target length, S source length, E hidden_dim.
"""

import keras

from keras_tfm.checks import check_divisible
from keras_tfm.checks import check_positive_int
from keras_tfm.layers.blocks.decoder import Decoder
from keras_tfm.layers.blocks.encoder import Encoder
from keras_tfm.layers.position.positional_encoding import PositionalEncoding
from keras_tfm.models.encoder_decoder import EncoderDecoder
from keras_tfm.models.presets import preset_arguments
from keras_tfm.models.token_layers import make_token_layers


@keras.saving.register_keras_serializable(package="keras_tfm")
class Transformer(EncoderDecoder):
    """Predict each token of a target sequence from a source and the past.

    Embeddings and sinusoids, an `Encoder`, a `Decoder` and a projection to the
    target vocabulary. The decoder reads the target shifted right by one
    (`keras_tfm.ops.shift_right`).

    Masking: padding is found from the ids and handed down as a tensor to every
    block, so that it survives compilation, nesting and export.

    Args:
        source_vocabulary_size: Positive integer.
        target_vocabulary_size: Positive integer. Defaults to
            `source_vocabulary_size`.
        num_layers: Positive integer. Blocks of the encoder, and of the decoder
            unless `num_decoder_layers` is given. Defaults to `6`.
        hidden_dim: Positive integer. Defaults to `512`.
        intermediate_dim: Positive integer. Width of the feed-forward networks.
            Defaults to `2048`.
        num_heads: Positive integer. Defaults to `8`.
        num_decoder_layers: Positive integer. Defaults to `num_layers`.
        activation: Keras activation. Defaults to `"relu"`.
        dropout: Float in [0, 1). Share dropped of the embeddings and of each
            part's output. Defaults to `0.1`.
        attention_dropout: Float in [0, 1). Share of attention weights dropped.
            Defaults to `0.0`.
        activation_dropout: Float in [0, 1). Share of intermediate values
            dropped. Defaults to `0.0`.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`.
        layer_norm_epsilon: Positive float. Defaults to `1e-6`.
        use_bias: Boolean. Whether the attention has biases.
            Defaults to `False`.
        tie_embeddings: `"all"` (source, target and softmax share a table; needs
            one vocabulary), `"decoder"` (target and softmax) or `None`.
            Defaults to `"decoder"`.
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
        >>> model = Transformer(
        ...     11, num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=2
        ... )
        >>> ids = keras.ops.ones((1, 5), "int32")
        >>> tuple(model({"source_ids": ids, "target_ids": ids}).shape)
        (1, 5, 11)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), figure 1.
        The defaults are the sizes of the paper with pre-norm.
    """

    def __init__(  # noqa: PLR0913 (a model's sizes are one flat list)
        self,
        source_vocabulary_size,
        target_vocabulary_size=None,
        num_layers=6,
        hidden_dim=512,
        intermediate_dim=2048,
        num_heads=8,
        num_decoder_layers=None,
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
        if num_decoder_layers is None:
            num_decoder_layers = num_layers
        check_positive_int("num_heads", num_heads)
        check_positive_int("hidden_dim", hidden_dim)
        check_divisible("hidden_dim", hidden_dim, "num_heads", num_heads)
        policy = keras.dtype_policies.get(
            dtype or keras.config.dtype_policy().name
        )
        block_arguments = {
            "num_heads": num_heads,
            "intermediate_dim": intermediate_dim,
            "activation": activation,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "normalize_first": normalize_first,
            "layer_norm_epsilon": layer_norm_epsilon,
            "use_bias": use_bias,
            "dtype": policy,
        }

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
        position = PositionalEncoding(
            position_layout, position_denominator, dtype=policy, name="position"
        )
        encoder = Encoder(num_layers, name="encoder", **block_arguments)
        decoder = Decoder(num_decoder_layers, name="decoder", **block_arguments)

        # --- Config ---
        arguments = {
            "source_vocabulary_size": source_vocabulary_size,
            "target_vocabulary_size": target_vocabulary_size,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "intermediate_dim": intermediate_dim,
            "num_heads": num_heads,
            "num_decoder_layers": num_decoder_layers,
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
            position,
            policy=policy,
            arguments=arguments,
            **kwargs,
        )

    @classmethod
    def from_preset(cls, preset, source_vocabulary_size, **kwargs):
        """Make a model of published sizes.

        Args:
            preset: String, a key of `keras_tfm.models.PRESETS`.
            source_vocabulary_size: Positive integer.
            **kwargs: Arguments of the model that replace the preset's.

        Raises:
            ValueError: If there is no preset of that name.
        """
        return cls(
            source_vocabulary_size, **{**preset_arguments(preset), **kwargs}
        )

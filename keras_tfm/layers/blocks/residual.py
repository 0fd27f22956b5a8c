"""The residual connection around every part of a block."""

import keras

from keras_tfm.checks import check_positive
from keras_tfm.checks import check_share
from keras_tfm.layers.regularization.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_tfm")
class Residual(keras.layers.Layer):
    """Add `sublayer(x)` to `x`, with dropout and layer normalisation.

    Pre-norm (`normalize_first=True`) is `x + drop(sublayer(norm(x)))`;
    post-norm is `norm(x + drop(sublayer(x)))`.

    Masking: passes the mask on.

    Args:
        sublayer: Keras layer whose output has the shape of its first input. If
            it returns a tuple, the first entry is the output and the others are
            returned behind the result.
        dropout: Float in [0, 1). Share of the sublayer's output dropped in
            training. Defaults to `0.0`.
        normalize_first: Boolean. Pre-norm or post-norm. Defaults to `True`.
        layer_norm_epsilon: Positive float, added to the variance.
            Defaults to `1e-6` (Keras's own default is 1e-3).
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        context: Float tensor handed to the sublayer as its second input, if
            given.
        training: Boolean. Whether dropout is active.

    Output shape:
        As the inputs.

    Raises:
        ValueError: If `dropout` or `layer_norm_epsilon` is out of range.

    Example:
        >>> layer = Residual(keras.layers.Dense(4))
        >>> tuple(layer(keras.ops.ones((1, 5, 4))).shape)
        (1, 5, 4)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1
        (post-norm); [Xiong et al., 2020](https://arxiv.org/abs/2002.04745),
        section 3 (pre-norm).
    """

    def __init__(
        self,
        sublayer,
        dropout=0.0,
        normalize_first=True,
        layer_norm_epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sublayer = sublayer
        self.dropout = check_share("dropout", dropout)
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = check_positive(
            "layer_norm_epsilon", layer_norm_epsilon
        )
        self.supports_masking = True

    def build(self, inputs_shape, context_shape=None):
        self.norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="norm",
        )
        self.norm.build(inputs_shape)
        self.drop = Dropout(self.dropout, dtype=self.dtype_policy, name="drop")
        if not self.sublayer.built:
            context = () if context_shape is None else (context_shape,)
            self.sublayer.build(inputs_shape, *context)
        self.built = True

    def call(self, inputs, context=None, training=None):
        tensors = () if context is None else (context,)
        return self.connect(
            inputs,
            lambda x: self.sublayer(x, *tensors, training=training),
            training,
        )

    def connect(self, inputs, function, training=None):
        """Put any function of one sequence in the place of the sublayer.

        A block hands over masks and flags this way, and a decoding step its
        cache.

        Args:
            inputs: Float tensor `(batch, length, hidden_dim)`.
            function: Function of a tensor of that shape. It returns one, or a
                tuple that begins with one.
            training: Boolean. Whether dropout is active.

        Returns:
            The result, or a tuple of it and the rest that `function` returned.
        """
        outputs = function(
            self.norm(inputs) if self.normalize_first else inputs
        )
        rest = ()
        if isinstance(outputs, tuple):
            outputs, *rest = outputs
        total = inputs + self.drop(outputs, training=training)
        total = total if self.normalize_first else self.norm(total)
        return (total, *rest) if rest else total

    def compute_output_shape(self, inputs_shape, context_shape=None):
        return inputs_shape

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, so that the flags change the shapes as they do there.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "sublayer": keras.saving.serialize_keras_object(self.sublayer),
            "dropout": self.dropout,
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }

    @classmethod
    def from_config(cls, config):
        sublayer = keras.saving.deserialize_keras_object(config["sublayer"])
        return cls(**{**config, "sublayer": sublayer})

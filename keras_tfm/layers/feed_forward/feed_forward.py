"""The position-wise feed-forward network."""

import keras

from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share
from keras_tfm.layers.regularization.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_tfm")
class FeedForward(keras.layers.Layer):
    """Widen each position, apply a nonlinearity, and project back.

    `activation(x W1 + b1) W2 + b2`, the same for every position.

    Masking: passes the mask on; positions do not mix.

    Args:
        intermediate_dim: Positive integer. Width between the two projections.
        activation: Keras activation. Defaults to `"relu"`. `"gelu"` is the
            exact one; pass `keras_tfm.layers.gelu_tanh` for its tanh form.
        dropout: Float in [0, 1). Share of intermediate values dropped in
            training. Defaults to `0.0`.
        kernel_initializer: Keras initializer of both projections.
            Defaults to `"glorot_uniform"`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.
        training: Boolean. Whether dropout is active.

    Output shape:
        As the inputs.

    Raises:
        ValueError: If `intermediate_dim` is not positive or `dropout` is out of
            range.

    Example:
        >>> layer = FeedForward(intermediate_dim=8)
        >>> tuple(layer(keras.ops.ones((1, 5, 4))).shape)
        (1, 5, 4)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.3.
    """

    def __init__(
        self,
        intermediate_dim,
        activation="relu",
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = check_positive_int(
            "intermediate_dim", intermediate_dim
        )
        self.activation = keras.activations.get(activation)
        self.dropout = check_share("dropout", dropout)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        self.widen = keras.layers.Dense(
            self.intermediate_dim,
            activation=self.activation,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="widen",
        )
        self.widen.build(input_shape)
        self.drop = Dropout(self.dropout, dtype=self.dtype_policy, name="drop")
        self.project = keras.layers.Dense(
            input_shape[-1],
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="project",
        )
        self.project.build((*input_shape[:-1], self.intermediate_dim))
        self.built = True

    def call(self, inputs, training=None):
        hidden = self.widen(inputs)
        hidden = self.drop(hidden, training=training)
        return self.project(hidden)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }

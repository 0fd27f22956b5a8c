"""Token ids to vectors, and vectors back to logits with the same table."""

import keras
import numpy as np
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.ops.masks import padding_mask


@keras.saving.register_keras_serializable(package="keras_tfm")
class TokenEmbedding(keras.layers.Layer):
    """Look up a vector for each token id, or score every token for a vector.

    `layer(token_ids)` gives `table[token_ids] * sqrt(hidden_dim)`;
    `layer(vectors, reverse=True)` gives the logits `vectors @ table.T`. One
    table serves both, so that a model can tie its input and its output.

    The gradient of the table is dense, so that an optimizer sees one sum for
    each token, not one entry for each time it occurs.

    Masking: sets the Keras mask `token_ids != pad_id`.

    Args:
        vocabulary_size: Positive integer. Number of token ids.
        hidden_dim: Positive integer. Size of each vector.
        scale: Boolean. Whether to multiply by the square root of
            `hidden_dim` on the way in. Defaults to `True`.
        pad_id: Integer, the id of padding, or `None` for no mask.
            Defaults to `0`.
        embeddings_initializer: Keras initializer. Defaults to a normal
            distribution with the standard deviation `hidden_dim ** -0.5`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Integer tensor of ids of any shape, usually `(batch, length)`;
            with `reverse=True` a float tensor `(…, hidden_dim)`.
        reverse: Boolean. Whether to compute logits. Defaults to `False`.

    Output shape:
        `(batch, length, hidden_dim)`; with `reverse=True`
        `(batch, length, vocabulary_size)`.

    Raises:
        TypeError: If the ids are not integers.
        ValueError: If a size is not positive, or, outside a compiled function,
            if an id is out of range.

    Example:
        >>> layer = TokenEmbedding(vocabulary_size=7, hidden_dim=4)
        >>> vectors = layer(np.array([[1, 2, 0]]))
        >>> tuple(layer(vectors, reverse=True).shape)
        (1, 3, 7)

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.4;
        the initial deviation is Tensor2Tensor's.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        scale=True,
        pad_id=0,
        embeddings_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = check_positive_int(
            "vocabulary_size", vocabulary_size
        )
        self.hidden_dim = check_positive_int("hidden_dim", hidden_dim)
        self.scale = scale
        self.pad_id = pad_id
        if embeddings_initializer is None:
            embeddings_initializer = keras.initializers.RandomNormal(
                stddev=hidden_dim**-0.5
            )
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer
        )
        self.supports_masking = True

    def build(self, input_shape=None):
        self.embeddings = self.add_weight(
            shape=(self.vocabulary_size, self.hidden_dim),
            initializer=self.embeddings_initializer,
            name="embeddings",
        )
        self.built = True

    def call(self, inputs, reverse=False):
        table = ops.cast(self.embeddings, self.compute_dtype)
        if reverse:
            return ops.matmul(inputs, ops.transpose(table))
        self._check_dtype(inputs)
        self._check_range(inputs)
        # A gather from a product, not from the variable: its gradient is dense.
        factor = self.hidden_dim**0.5 if self.scale else 1.0
        return ops.take(table * factor, inputs, axis=0)

    def compute_mask(self, inputs, previous_mask=None):
        if not _is_integer(inputs):
            return previous_mask
        return (
            None if self.pad_id is None else padding_mask(inputs, self.pad_id)
        )

    def compute_output_shape(self, input_shape, reverse=False):
        if reverse:
            return (*input_shape[:-1], self.vocabulary_size)
        return (*input_shape, self.hidden_dim)

    def compute_output_spec(self, inputs, reverse=False):
        if not reverse:
            # A `keras.Input` is float where nobody says otherwise.
            self._check_dtype(inputs)
        shape = self.compute_output_shape(inputs.shape, reverse)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "scale": self.scale,
            "pad_id": self.pad_id,
            "embeddings_initializer": keras.initializers.serialize(
                self.embeddings_initializer
            ),
        }

    def _check_dtype(self, token_ids):
        if not _is_integer(token_ids):
            raise TypeError(
                f"`{self.name}` takes integer token ids. Received dtype "
                f"{keras.backend.standardize_dtype(token_ids.dtype)}. Declare "
                'the input as `keras.Input((None,), dtype="int32")`.'
            )

    def _check_range(self, token_ids):
        try:
            ids = np.asarray(token_ids)
        except Exception:  # A symbolic or traced tensor has no values yet.
            return
        if ids.size and not 0 <= ids.min() <= ids.max() < self.vocabulary_size:
            raise ValueError(
                f"`{self.name}` takes token ids from 0 to "
                f"{self.vocabulary_size - 1}. Received ids from {ids.min()} to "
                f"{ids.max()}. Check that the tokenizer and the model have the "
                "same vocabulary."
            )


def _is_integer(tensor):
    return "int" in keras.backend.standardize_dtype(tensor.dtype)

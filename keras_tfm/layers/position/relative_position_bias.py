"""Learned scores of distances, one for each bucket and head."""

import keras
from keras import ops

from keras_tfm.layers.position.distance_bias import DistanceBias
from keras_tfm.ops.relative_positions import relative_buckets


@keras.saving.register_keras_serializable(package="keras_tfm")
class RelativePositionBias(DistanceBias):
    """Add a trained number to each score, by how far the key is away.

    Near distances have a number each, far ones share one: see
    `keras_tfm.ops.relative_buckets`. Given to an attention layer as `position`,
    or called on distances. The same object given to several layers is one set
    of numbers, as in T5.

    Args:
        num_heads: Positive integer. Number of attention heads.
        num_buckets: Positive integer; even and at least 4 if `bidirectional`,
            else at least 2. Defaults to `32`.
        max_distance: Positive integer, in tokens: all beyond share a bucket.
            Defaults to `128`.
        bidirectional: Boolean. Whether keys after the query have buckets of
            their own. `False` is for causal attention. Defaults to `True`.
        embeddings_initializer: Keras initializer. Defaults to zeros: at first
            all distances are equal.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Integer tensor of any shape: distances in tokens, the position
            of the key minus that of the query.

    Output shape:
        `(*inputs.shape, num_heads)`.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> layer = RelativePositionBias(num_heads=2, num_buckets=4)
        >>> tuple(layer(keras.ops.array([-1, 0, 1])).shape)
        (3, 2)

    Reference:
        [Raffel et al., 2020](https://arxiv.org/abs/1910.10683), section 2.1.
        T5 does not scale its queries by the size of a head; the attention
        layers here do.
    """

    def __init__(
        self,
        num_heads,
        num_buckets=32,
        max_distance=128,
        bidirectional=True,
        embeddings_initializer="zeros",
        **kwargs,
    ):
        super().__init__(num_heads, **kwargs)
        # Checks the numbers.
        relative_buckets(0, num_buckets, max_distance, bidirectional)
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer
        )

    def build(self, input_shape=None):
        del input_shape  # The weights are the same for all distances.
        self.embeddings = self.add_weight(
            shape=(self.num_buckets, self.num_heads),
            initializer=self.embeddings_initializer,
            name="embeddings",
        )
        self.built = True

    def scores(self, distances):
        buckets = relative_buckets(
            distances, self.num_buckets, self.max_distance, self.bidirectional
        )
        # A gather from a product, not from the variable: its gradient is dense.
        table = ops.transpose(ops.convert_to_tensor(self.embeddings) * 1.0)
        return ops.take(table, buckets, axis=1)

    def get_config(self):
        return {
            **super().get_config(),
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
            "embeddings_initializer": keras.initializers.serialize(
                self.embeddings_initializer
            ),
        }

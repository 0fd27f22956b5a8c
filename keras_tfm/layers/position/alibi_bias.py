"""Attention with linear biases: far keys count for less."""

import keras

from keras_tfm.layers.position.distance_bias import DistanceBias
from keras_tfm.ops.relative_positions import alibi_scores


@keras.saving.register_keras_serializable(package="keras_tfm")
class AlibiBias(DistanceBias):
    """Take from each score in proportion to the distance of query and key.

    Every head has its own slope. Given to an attention layer as `position`, or
    called on distances. No weights, any length: a model may read longer texts
    than it was trained on.

    Args:
        num_heads: Positive integer. Number of attention heads.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Integer tensor of any shape: distances in tokens, the position
            of the key minus that of the query. The sign makes no difference.

    Output shape:
        `(*inputs.shape, num_heads)`.

    Example:
        >>> layer = AlibiBias(num_heads=1)
        >>> layer(keras.ops.array([-2, -1, 0])).numpy().tolist()
        [[-0.0078125], [-0.00390625], [0.0]]

    Reference:
        [Press et al., 2022](https://arxiv.org/abs/2108.12409), section 3. The
        paper is about causal attention; here keys after the query fall alike.
    """

    def scores(self, distances):
        return alibi_scores(distances, self.num_heads)

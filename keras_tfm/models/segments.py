"""What the segments of packed rows mean for a model, as layers.

Shape letters: B batch, T query length, S key length.
"""

import keras

from keras_tfm.ops.masks import segment_mask
from keras_tfm.ops.sequences import segment_positions


@keras.saving.register_keras_serializable(package="keras_tfm")
class SegmentMask(keras.layers.Layer):
    """Let each token attend within its own segment, see `ops.segment_mask`.

    Args:
        **kwargs: Passed to `keras.layers.Layer`, such as `name`.

    Call arguments:
        query_segments: Integer tensor `(batch, target_length)`: 1, 2, … for
            the sequences of a row and 0 for padding.
        key_segments: Integer tensor `(batch, source_length)`.

    Output shape:
        `(batch, target_length, source_length)`, boolean.

    Example:
        >>> segments = keras.ops.array([[1, 2, 0]])
        >>> SegmentMask()(segments, segments).numpy().astype(int).tolist()
        [[[1, 0, 0], [0, 1, 0], [0, 0, 0]]]
    """

    def call(self, query_segments, key_segments):
        return segment_mask(query_segments, key_segments)

    def compute_output_shape(self, query_segments_shape, key_segments_shape):
        return (*query_segments_shape, key_segments_shape[-1])

    def compute_output_spec(self, query_segments, key_segments):
        shape = self.compute_output_shape(
            query_segments.shape, key_segments.shape
        )
        return keras.KerasTensor(shape, dtype="bool")


@keras.saving.register_keras_serializable(package="keras_tfm")
class SegmentPositions(keras.layers.Layer):
    """Number the tokens of each segment from 0, see `ops.segment_positions`.

    Args:
        **kwargs: Passed to `keras.layers.Layer`, such as `name`.

    Call arguments:
        segments: Integer tensor `(batch, length)`.

    Output shape:
        As the segments, int32.

    Example:
        >>> segments = keras.ops.array([[1, 1, 2, 2, 2, 0]])
        >>> SegmentPositions()(segments).numpy().tolist()
        [[0, 1, 0, 1, 2, 0]]
    """

    def call(self, segments):
        return segment_positions(segments)

    def compute_output_shape(self, segments_shape):
        return segments_shape

    def compute_output_spec(self, segments):
        return keras.KerasTensor(segments.shape, dtype="int32")

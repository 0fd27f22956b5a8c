"""Weights that make the loss of several batches the mean over all tokens."""

from __future__ import annotations

import tensorflow as tf

from keras_tfm.checks import check_positive_int


def with_token_weights(
    dataset: tf.data.Dataset, num_batches: int, pad_id: int = 0
) -> tf.data.Dataset:
    """Weigh the tokens of each `num_batches` batches that make one update.

    A token's weight is `num_batches` over the number of real target tokens in
    all of them. Where gradients of the batches' weighted sums are averaged, as
    Keras does, the update is that of one large batch, however the tokens are
    distributed.

    Args:
        dataset: Dataset of `(inputs, labels)` of one shape, without end or of a
            multiple of `num_batches` batches: what is left over is dropped.
        num_batches: Positive integer.
        pad_id: Integer. Labels that do not count. Defaults to `0`.

    Returns:
        Dataset of `(inputs, labels, weights)`, float32 weights of the shape of
        the labels.

    Example:
        >>> labels = [[[5, 6, 7]], [[8, 0, 0]]]
        >>> dataset = tf.data.Dataset.from_tensor_slices((labels, labels))
        >>> weighted = with_token_weights(dataset, 2)
        >>> [weights.numpy().tolist() for _, _, weights in weighted]
        [[[0.5, 0.5, 0.5]], [[0.5, 0.0, 0.0]]]
    """
    check_positive_int("num_batches", num_batches)

    def weigh(inputs, labels):
        real = tf.cast(tf.not_equal(labels, pad_id), tf.float32)
        total = tf.maximum(tf.reduce_sum(real), 1.0)
        return inputs, labels, real * (num_batches / total)

    grouped = dataset.batch(num_batches, drop_remainder=True)
    return grouped.map(weigh).unbatch()

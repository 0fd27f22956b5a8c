"""Metrics over real tokens, by the same rule as the loss."""

import keras
from keras import ops

from keras_tfm.ops.cross_entropy import label_logits
from keras_tfm.ops.cross_entropy import smoothed_cross_entropy
from keras_tfm.ops.cross_entropy import token_weights


class TokenMetric(keras.metrics.Metric):
    """Abstract: a weighted mean over the real target tokens seen so far.

    A subclass fills in `values`.
    """

    def __init__(self, pad_id=0, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.pad_id = pad_id
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")

    def values(self, y_true, y_pred, weights):
        """Return the float32 value of each token times its weight `(B, T)`."""
        raise NotImplementedError(
            f"`{type(self).__name__}` must fill in `values`."
        )

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        weights = token_weights(y_true, self.pad_id, sample_weight)
        values = self.values(y_true, y_pred, weights)
        self.total.assign_add(ops.sum(values))
        self.count.assign_add(ops.sum(weights))

    def result(self):
        return ops.divide_no_nan(self.total, self.count)

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id}


@keras.saving.register_keras_serializable(package="keras_tfm")
class TokenAccuracy(TokenMetric):
    """Share of the real target tokens that have the highest logit.

    Args:
        pad_id: Integer. Labels that do not count. Defaults to `0`.
        name: String. Defaults to `"token_accuracy"`.
        **kwargs: Passed to `keras.metrics.Metric`, such as `dtype`.

    Example:
        >>> metric = TokenAccuracy()
        >>> metric.update_state([[1, 0]], [[[0.0, 9.0], [0.0, 9.0]]])
        >>> float(metric.result())
        1.0
    """

    def __init__(self, pad_id=0, name="token_accuracy", **kwargs):
        super().__init__(pad_id, name, **kwargs)

    def values(self, y_true, y_pred, weights):
        # The largest is at hand from the loss; where it lies takes longer.
        counted = ops.not_equal(weights, 0.0)
        labels = ops.where(counted, y_true, ops.zeros_like(y_true))
        logits = ops.cast(y_pred, "float32")
        right = label_logits(labels, logits) >= ops.max(logits, axis=-1)
        return ops.cast(right, "float32") * weights


@keras.saving.register_keras_serializable(package="keras_tfm")
class Perplexity(TokenMetric):
    """Exponential of the mean cross-entropy of the real target tokens.

    Without label smoothing, whatever the loss uses.

    Args:
        pad_id: Integer. Labels that do not count. Defaults to `0`.
        name: String. Defaults to `"perplexity"`.
        **kwargs: Passed to `keras.metrics.Metric`, such as `dtype`.

    Example:
        >>> metric = Perplexity()
        >>> metric.update_state([[1, 0]], [[[0.0, 0.0], [0.0, 9.0]]])
        >>> round(float(metric.result()), 4)
        2.0
    """

    def __init__(self, pad_id=0, name="perplexity", **kwargs):
        super().__init__(pad_id, name, **kwargs)

    def values(self, y_true, y_pred, weights):
        return smoothed_cross_entropy(y_true, y_pred, weights=weights)

    def result(self):
        return ops.exp(super().result())


@keras.saving.register_keras_serializable(package="keras_tfm")
class ChunkedAccuracy(TokenAccuracy):
    """`TokenAccuracy` of what a `LossModel` returns."""

    def values(self, y_true, y_pred, weights):
        return y_pred[..., 1] * weights


@keras.saving.register_keras_serializable(package="keras_tfm")
class ChunkedPerplexity(Perplexity):
    """`Perplexity` of what a `LossModel` returns."""

    def values(self, y_true, y_pred, weights):
        return y_pred[..., 0] * weights

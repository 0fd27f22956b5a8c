"""Cross-entropy of next-token predictions on integer labels, token by token.

Shape letters: B batch, T length, V vocabulary.
"""

from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_share

FLAVOURS = ("uniform", "tensor2tensor")


def smoothed_cross_entropy(
    labels, logits, label_smoothing=0.0, flavour="uniform", weights=None
):
    """Cross-entropy against smoothed integer labels, without one-hot targets.

    With smoothing ε the right token's target is `1 - ε`, spread as follows:
    `"uniform"` gives ε/V to every token, the right one too (Keras and torch);
    `"tensor2tensor"` gives ε/(V-1) to every wrong one.

    Args:
        labels: Integer tensor `(B, T)`, ids in [0, V). Where `weights` is 0 any
            value will do, also one out of range such as -100.
        logits: Float tensor `(B, T, V)`. The loss is computed in float32.
        label_smoothing: Float in [0, 1). Defaults to `0.0`.
        flavour: `"uniform"` or `"tensor2tensor"`. Defaults to `"uniform"`.
        weights: Tensor `(B, T)`, or `None` for 1 everywhere. Positions of
            weight 0 count for nothing, whatever they hold, NaN included.

    Returns:
        Float32 tensor `(B, T)`: the loss of each token times its weight.

    Raises:
        ValueError: If `label_smoothing` or `flavour` is out of range.

    Example:
        >>> loss = smoothed_cross_entropy([[1]], [[[0.0, 0.0]]])
        >>> round(float(loss[0, 0]), 4)
        0.6931

    Reference:
        [Szegedy et al., 2015](https://arxiv.org/abs/1512.00567), section 7.
        Tensor2Tensor also subtracts the entropy of the smoothed target, a
        constant; here it is left in, so that the loss is a cross-entropy.
    """
    check_share("label_smoothing", label_smoothing)
    check_choice("flavour", flavour, FLAVOURS)
    logits = ops.cast(logits, "float32")
    if weights is None:
        return _losses(logits, labels, label_smoothing, flavour)
    weights = ops.cast(weights, "float32")
    counted = ops.not_equal(weights, 0.0)
    labels = ops.where(counted, labels, ops.zeros_like(labels))
    losses = _losses(logits, labels, label_smoothing, flavour, counted)
    return losses * weights


def label_logits(labels, logits):
    """Pick the logit of each label: `(B, T)` of `(B, T, V)`."""
    picked = ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1)
    return ops.squeeze(picked, -1)


def _losses(logits, labels, label_smoothing, flavour, counted=None):
    size = logits.shape[-1]
    labels = ops.cast(labels, "int32")
    spread = size if flavour == "uniform" else size - 1
    wrong_target = label_smoothing / spread
    right_target = 1.0 - wrong_target * (size - 1)

    def losses_and_gradient(logits):
        shape = ops.shape(labels)
        # One row a token: XLA finds faster sums for two axes than for three.
        rows = ops.reshape(logits, (-1, size))
        largest = ops.max(rows, axis=-1, keepdims=True)
        powers = ops.exp(rows - largest)
        total = ops.sum(powers, axis=-1, keepdims=True)
        log_total = ops.reshape(ops.log(total) + largest, shape)
        losses = log_total - label_logits(labels, logits)
        if label_smoothing:
            # -sum(log p) / V, against the uniform distribution.
            even = log_total - ops.reshape(ops.mean(rows, axis=-1), shape)
            if flavour == "tensor2tensor":
                even = (even * size - losses) / (size - 1)
            losses = (1.0 - label_smoothing) * losses + label_smoothing * even
        if counted is not None:
            losses = ops.where(counted, losses, 0.0)

        def gradient(*args, upstream=None):
            # Probabilities less targets, in one pass: the derivative that a
            # backend finds goes through an array of zeros and a scatter.
            (upstream,) = args or (upstream,)
            ids = ops.arange(size, dtype="int32")
            right = ops.equal(ids, ops.reshape(labels, (-1, 1)))
            targets = ops.where(right, right_target, wrong_target)
            errors = powers / total - targets
            errors = errors * ops.reshape(upstream, (-1, 1))
            if counted is not None:
                real = ops.reshape(counted, (-1, 1))
                errors = ops.where(real, errors, 0.0)
            return ops.reshape(errors, ops.shape(logits))

        return losses, gradient

    return ops.custom_gradient(losses_and_gradient)(logits)


def token_mean(values, weights):
    """Sum of `values` divided by the sum of `weights`; 0 where nothing counts.

    Args:
        values: Float tensor `(B, T)`, weighted already.
        weights: Tensor `(B, T)`.

    Returns:
        Float32 scalar tensor.
    """
    total = ops.sum(ops.cast(values, "float32"))
    return ops.divide_no_nan(total, ops.sum(ops.cast(weights, "float32")))

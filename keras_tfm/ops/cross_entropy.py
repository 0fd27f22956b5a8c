"""Cross-entropy of next-token predictions on integer labels, token by token.

Shape letters: B batch, T length, V vocabulary.
"""

from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_share
from keras_tfm.ops.masks import padding_mask

FLAVOURS = ("uniform", "tensor2tensor")
REDUCTIONS = ("token_mean", "sum")


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


def row_softmax(rows):
    """Return what the loss of each row needs of its softmax.

    Args:
        rows: Float32 tensor `(N, V)`, logits.

    Returns:
        Float32 tensors: `powers` `(N, V)`, their sum `(N, 1)`, and the
        logarithm of the sum of the logits' exponentials `(N,)`.
    """
    largest = ops.max(rows, axis=-1, keepdims=True)
    powers = ops.exp(rows - largest)
    total = ops.sum(powers, axis=-1, keepdims=True)
    return powers, total, ops.squeeze(ops.log(total) + largest, -1)


def row_losses(own_logits, rows, log_total, label_smoothing, flavour):
    """Return the smoothed loss of each row.

    Args:
        own_logits: Float32 tensor `(N,)`, of the labels.
        rows: Float32 tensor `(N, V)`, logits.
        log_total: Float32 tensor `(N,)`, by `row_softmax`.
        label_smoothing: Float in [0, 1).
        flavour: `"uniform"` or `"tensor2tensor"`.

    Returns:
        Float32 tensor `(N,)`.
    """
    losses = log_total - own_logits
    if not label_smoothing:
        return losses
    # -sum(log p) / V, against the uniform distribution.
    even = log_total - ops.mean(rows, axis=-1)
    if flavour == "tensor2tensor":
        size = rows.shape[-1]
        even = (even * size - losses) / (size - 1)
    return (1.0 - label_smoothing) * losses + label_smoothing * even


def row_errors(labels, powers, total, label_smoothing, flavour):
    """Return the derivative of each row's loss by its logits.

    Probabilities less targets, in one pass: the derivative that a backend finds
    goes through an array of zeros and a scatter.

    Args:
        labels: Integer tensor `(N,)`.
        powers: Float32 tensor `(N, V)`, by `row_softmax`.
        total: Float32 tensor `(N, 1)`, by `row_softmax`.
        label_smoothing: Float in [0, 1).
        flavour: `"uniform"` or `"tensor2tensor"`.

    Returns:
        Float32 tensor `(N, V)`.
    """
    size = powers.shape[-1]
    wrong = label_smoothing / (size if flavour == "uniform" else size - 1)
    right = 1.0 - wrong * (size - 1)
    ids = ops.arange(size, dtype="int32")
    is_label = ops.equal(ids, ops.expand_dims(labels, -1))
    return powers / total - ops.where(is_label, right, wrong)


def _losses(logits, labels, label_smoothing, flavour, counted=None):
    size = logits.shape[-1]
    labels = ops.cast(labels, "int32")

    def losses_and_gradient(logits):
        shape = ops.shape(labels)
        # One row a token: XLA finds faster sums for two axes than for three.
        rows = ops.reshape(logits, (-1, size))
        powers, total, log_total = row_softmax(rows)
        own = ops.reshape(label_logits(labels, logits), (-1,))
        losses = row_losses(own, rows, log_total, label_smoothing, flavour)
        losses = ops.reshape(losses, shape)
        if counted is not None:
            losses = ops.where(counted, losses, 0.0)

        def gradient(*args, upstream=None):
            (upstream,) = args or (upstream,)
            ids = ops.reshape(labels, (-1,))
            errors = row_errors(ids, powers, total, label_smoothing, flavour)
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


def token_weights(labels, pad_id=0, sample_weight=None):
    """Weigh each label: 0 for padding, else 1 or its sample weight.

    Args:
        labels: Integer tensor `(B, T)`.
        pad_id: Integer. Labels that do not count.
        sample_weight: Float tensor `(B,)` or `(B, T)`, or `None`.

    Returns:
        Float32 tensor `(B, T)`.

    Example:
        >>> token_weights([[5, 0]], sample_weight=[0.5]).numpy()
        array([[0.5, 0. ]], dtype=float32)
    """
    weights = ops.cast(padding_mask(labels, pad_id), "float32")
    if sample_weight is None:
        return weights
    sample_weight = ops.cast(sample_weight, "float32")
    if len(sample_weight.shape) == 1:
        sample_weight = ops.expand_dims(sample_weight, -1)
    return weights * sample_weight

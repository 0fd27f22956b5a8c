"""The training loss: smoothed cross-entropy, averaged over real tokens."""

import keras
from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_share
from keras_tfm.ops.cross_entropy import FLAVOURS
from keras_tfm.ops.cross_entropy import REDUCTIONS
from keras_tfm.ops.cross_entropy import smoothed_cross_entropy
from keras_tfm.ops.cross_entropy import token_mean
from keras_tfm.ops.cross_entropy import token_weights


@keras.saving.register_keras_serializable(package="keras_tfm")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy with label smoothing, for next-token predictions.

    The sum over real target tokens divided by their number: padding a batch
    more changes neither the loss nor its gradient. Labels stay integers; no
    one-hot array is made. The implicit Keras mask of the logits is ignored, for
    the labels say what is padding.

    Args:
        label_smoothing: Float in [0, 1). Defaults to `0.0`.
        flavour: `"uniform"` spreads it over all tokens (Keras, torch),
            `"tensor2tensor"` over the wrong ones. Defaults to `"uniform"`.
        pad_id: Integer. Labels that do not count. Defaults to `0`.
        reduction: `"token_mean"`, or `"sum"` for several replicas, with sample
            weights that sum to 1 over the global batch.
            Defaults to `"token_mean"`.
        name: String. Defaults to `"smoothed_cross_entropy"`.
        **kwargs: Passed to `keras.losses.Loss`, such as `dtype`.

    Call arguments:
        y_true: Integer tensor `(batch, length)`.
        y_pred: Float tensor `(batch, length, vocabulary_size)`, logits.
        sample_weight: Float tensor `(batch,)` or `(batch, length)`, or `None`.
            Multiplies each token's loss and its share in the mean.

    Output shape:
        A float32 scalar; 0 for a batch without real tokens.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> loss = SmoothedCrossEntropy()
        >>> logits = keras.ops.zeros((1, 2, 4))
        >>> round(float(loss([[3, 0]], logits)), 4)
        1.3863

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 5.4.
    """

    def __init__(
        self,
        label_smoothing=0.0,
        flavour="uniform",
        pad_id=0,
        reduction="token_mean",
        name="smoothed_cross_entropy",
        **kwargs,
    ):
        check_choice("reduction", reduction, REDUCTIONS)
        # Keras scales every other reduction by the number of replicas.
        super().__init__(name=name, reduction="sum", **kwargs)
        self.label_smoothing = check_share("label_smoothing", label_smoothing)
        self.flavour = check_choice("flavour", flavour, FLAVOURS)
        self.pad_id = pad_id
        self.token_reduction = reduction

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        weights = token_weights(y_true, self.pad_id, sample_weight)
        losses = self._losses(y_true, y_pred, weights)
        if self.token_reduction == "sum":
            return ops.sum(losses)
        return token_mean(losses, weights)

    def call(self, y_true, y_pred):
        """Return the loss of each token `(batch, length)`, 0 for padding."""
        y_true = ops.convert_to_tensor(y_true)
        return self._losses(y_true, y_pred, token_weights(y_true, self.pad_id))

    def get_config(self):
        config = super().get_config()
        return {
            **config,
            "label_smoothing": self.label_smoothing,
            "flavour": self.flavour,
            "pad_id": self.pad_id,
            "reduction": self.token_reduction,
        }

    def _losses(self, y_true, y_pred, weights):
        return smoothed_cross_entropy(
            y_true, y_pred, self.label_smoothing, self.flavour, weights
        )

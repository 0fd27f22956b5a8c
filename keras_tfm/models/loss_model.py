"""A model that is trained on its loss, without the array of all logits.

Shape letters: B batch, T target length.
"""

import keras
from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.models.packed_model import target_vectors
from keras_tfm.ops.cross_entropy import REDUCTIONS
from keras_tfm.ops.cross_entropy import token_weights
from keras_tfm.ops.vocabulary_loss import vocabulary_loss


@keras.saving.register_keras_serializable(package="keras_tfm")
class LossModel(keras.Model):
    """Compute an encoder-decoder's loss chunk by chunk, see `vocabulary_loss`.

    It has the very weights of the model: training it trains the model. The loss
    is `SmoothedCrossEntropy`'s, and is added by `add_loss`: compile it without
    a loss, with `ChunkedAccuracy` and `ChunkedPerplexity` as metrics.

    Args:
        model: An encoder-decoder model, such as a `Transformer`.
        packed: Boolean. Whether the rows hold several pairs each, see
            `packed_model`. Defaults to `False`.
        label_smoothing: Float in [0, 1). Defaults to `0.0`.
        reduction: See `SmoothedCrossEntropy`. Defaults to `"token_mean"`.
        **kwargs: Passed to `keras.Model`, such as `name`.

    Call arguments:
        inputs: Dictionary of the inputs of the model, or of `packed_model`;
            `labels`, integers `(batch, target_length)`; and optionally
            `label_weights`, floats of the same shape. See `with_labels`.

    Output shape:
        `(batch, target_length, 2)`, float32: the loss of each label without
        smoothing, and 1 where it has the highest logit.

    Raises:
        ValueError: If the reduction is unknown.

    Example:
        >>> from keras_tfm.models import Transformer
        >>> model = Transformer(
        ...     11, num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=2
        ... )
        >>> ids = ops.ones((1, 5), "int32")
        >>> inputs = {"source_ids": ids, "target_ids": ids, "labels": ids}
        >>> tuple(LossModel(model)(inputs).shape)
        (1, 5, 2)
    """

    def __init__(
        self,
        model,
        packed=False,
        label_smoothing=0.0,
        reduction="token_mean",
        **kwargs,
    ):
        # Float inputs are weights: they stay in float32.
        super().__init__(dtype=model.policy, autocast=False, **kwargs)
        self.body = target_vectors(model, packed)
        self.packed = packed
        self.label_smoothing = label_smoothing
        self.reduction = check_choice("reduction", reduction, REDUCTIONS)
        self._model = model
        self.built = True

    def call(self, inputs, training=None):
        inputs = dict(inputs)
        labels = inputs.pop("labels")
        weights = token_weights(
            labels,
            self._model.find_tokens.pad_id,
            inputs.pop("label_weights", None),
        )
        if self.reduction == "token_mean":
            weights = ops.divide_no_nan(weights, ops.sum(weights))
        vectors = self.body(inputs, training=training)
        loss, surprisals, hits = vocabulary_loss(
            vectors,
            self._model.vocabulary_table(),
            labels,
            weights,
            self.label_smoothing,
        )
        self.add_loss(loss)
        return ops.stack([surprisals, hits], axis=-1)

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape["labels"], 2)

    def get_config(self):
        return {
            "model": keras.saving.serialize_keras_object(self._model),
            "packed": self.packed,
            "label_smoothing": self.label_smoothing,
            "reduction": self.reduction,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = keras.saving.deserialize_keras_object(
            config["model"], custom_objects
        )
        return cls(**{**config, "model": model})


def with_labels(inputs, labels, weights=None):
    """Hand the labels of a batch to the model: for `tf.data.Dataset.map`.

    Args:
        inputs: Dictionary of the model's inputs.
        labels: Integer tensor `(B, T)`.
        weights: Float tensor `(B, T)`, or `None`.

    Returns:
        A batch for `LossModel`, of the same parts.
    """
    if weights is None:
        return {**inputs, "labels": labels}, labels
    inputs = {**inputs, "labels": labels, "label_weights": weights}
    return inputs, labels, weights

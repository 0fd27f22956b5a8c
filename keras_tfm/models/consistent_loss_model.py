"""A model that is trained to say the same whatever it drops.

Shape letters: B batch, T target length, E width.
"""

import keras
from keras import ops

from keras_tfm.checks import check_positive
from keras_tfm.models.loss_model import LossModel
from keras_tfm.ops.consistency_loss import consistency_loss


@keras.saving.register_keras_serializable(package="keras_tfm")
class ConsistentLossModel(LossModel):
    """Compute the loss of two passes with other dropout that are to agree.

    Each batch passes twice, as one batch of twice the rows; see
    `consistency_loss`. Without `training` it is a `LossModel`.

    Args:
        model: An encoder-decoder model with dropout, such as a `Transformer`.
        packed: See `LossModel`.
        label_smoothing: See `LossModel`.
        reduction: See `LossModel`.
        consistency: Positive float, how much the two passes are to agree. 5 is
            the paper's choice for translation. Defaults to `5.0`.
        **kwargs: Passed to `keras.Model`, such as `name`.

    Attributes:
        two_passes: Boolean. `False` trains it as a `LossModel`; a function that
            is compiled already does not notice, see `ConsistencyStart`.

    Call arguments:
        inputs: See `LossModel`.

    Output shape:
        `(batch, target_length, 2)`, see `LossModel`; means of both passes.

    Raises:
        ValueError: If the consistency is not positive, or the reduction is
            unknown.

    Example:
        >>> from keras_tfm.models import Transformer
        >>> model = Transformer(
        ...     11, num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=2
        ... )
        >>> ids = ops.ones((1, 5), "int32")
        >>> inputs = {"source_ids": ids, "target_ids": ids, "labels": ids}
        >>> network = ConsistentLossModel(model)
        >>> tuple(network(inputs, training=True).shape)
        (1, 5, 2)

    Reference:
        [Liang et al., 2021](https://arxiv.org/abs/2106.14448), R-Drop.
    """

    def __init__(
        self,
        model,
        packed=False,
        label_smoothing=0.0,
        reduction="token_mean",
        consistency=5.0,
        **kwargs,
    ):
        super().__init__(model, packed, label_smoothing, reduction, **kwargs)
        self.consistency = check_positive("consistency", consistency)
        self.two_passes = True

    def losses_of(self, inputs, labels, weights, training=None):
        if not (training and self.two_passes):
            return super().losses_of(inputs, labels, weights, training)
        twice = {
            name: ops.concatenate([ids, ids], axis=0)
            for name, ids in inputs.items()
        }
        vectors = self.body(twice, training=True)
        rows, length, width = ops.shape(vectors)
        return consistency_loss(
            ops.reshape(vectors, (2, rows // 2, length, width)),
            self.model.vocabulary_table(),
            labels,
            weights,
            self.consistency,
            self.label_smoothing,
        )

    def get_config(self):
        return {**super().get_config(), "consistency": self.consistency}

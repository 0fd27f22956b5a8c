"""Two passes through a network that drops at random, asked to agree.

Shape letters: B batch, T length, E width, V vocabulary; C positions of a chunk.
"""

from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_share
from keras_tfm.ops.cross_entropy import FLAVOURS
from keras_tfm.ops.cross_entropy import label_logits
from keras_tfm.ops.cross_entropy import row_errors
from keras_tfm.ops.cross_entropy import row_losses
from keras_tfm.ops.cross_entropy import row_softmax
from keras_tfm.ops.vocabulary_loss import Scores
from keras_tfm.ops.vocabulary_loss import default_chunk_size
from keras_tfm.ops.vocabulary_loss import loss_in_chunks


def consistency_loss(
    vectors,
    table,
    labels,
    weights,
    consistency,
    label_smoothing=0.0,
    flavour="uniform",
    chunk_size=None,
):
    """Mean cross-entropy of two passes, and how far apart they are (R-Drop).

    With `P` and `Q` the distributions that the passes give a position, its loss
    is `(H(P) + H(Q)) / 2 + consistency * (KL(P, Q) + KL(Q, P)) / 4`, where `H`
    is the smoothed cross-entropy. As in `vocabulary_loss` the logits of a few
    positions are at hand at a time.

    Args:
        vectors: Float tensor `(2, B, T, E)`, a pass after the other.
        table: Float tensor `(V, E)`, a row for each token.
        labels: Integer tensor `(B, T)`, ids in [0, V).
        weights: Float tensor `(B, T)`. Their gradient is not made.
        consistency: Positive float.
        label_smoothing: Float in [0, 1). Defaults to `0.0`.
        flavour: See `smoothed_cross_entropy`. Defaults to `"uniform"`.
        chunk_size: Positive integer, positions of a chunk. Defaults to as many
            as have four million logits.

    Returns:
        Three float32 tensors, see `vocabulary_loss`; the last two are the means
        of both passes.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> vectors = ops.ones((2, 1, 2, 3))
        >>> loss, _, _ = consistency_loss(
        ...     vectors, ops.zeros((4, 3)), [[1, 2]], [[0.5, 0.5]], 5.0
        ... )
        >>> round(float(loss), 4)
        1.3863

    Reference:
        [Liang et al., 2021](https://arxiv.org/abs/2106.14448), section 2.1.
        Theirs is twice this loss; their alpha is `consistency`.
    """
    check_positive("consistency", consistency)
    check_share("label_smoothing", label_smoothing)
    check_choice("flavour", flavour, FLAVOURS)
    labels = ops.convert_to_tensor(labels)
    if chunk_size is None:
        chunk_size = max(default_chunk_size(table.shape[0]) // 2, 1)

    def score(labels, logits):
        rows = ops.reshape(logits, (-1, logits.shape[-1]))
        both = ops.tile(labels, (2,))
        powers, total, log_total = row_softmax(rows)
        own = label_logits(both, rows)
        losses = row_losses(own, rows, log_total, label_smoothing, flavour)
        errors = row_errors(both, powers, total, label_smoothing, flavour)
        distance, by_logits = _distance(
            _halves(rows - ops.expand_dims(log_total, -1)),
            _halves(powers / total),
        )
        hits = ops.cast(own >= ops.max(rows, axis=-1), "float32")
        mean_errors = 0.5 * errors + 0.25 * consistency * by_logits
        return Scores(
            _mean(losses) + 0.25 * consistency * distance,
            ops.reshape(mean_errors, ops.shape(logits)),
            _mean(log_total - own),
            _mean(hits),
        )

    return loss_in_chunks(vectors, table, labels, weights, score, chunk_size)


def _halves(rows):
    return ops.split(rows, 2, axis=0)


def _mean(values):
    first, second = _halves(values)
    return 0.5 * (first + second)


def _distance(log_probabilities, probabilities):
    """Return both divergences' sum, and its derivative by all logits."""
    ratio = log_probabilities[0] - log_probabilities[1]
    apart = probabilities[0] - probabilities[1]
    forth = ops.sum(probabilities[0] * ratio, axis=-1, keepdims=True)
    back = ops.sum(-probabilities[1] * ratio, axis=-1, keepdims=True)
    by_logits = (
        probabilities[0] * (ratio - forth) + apart,
        probabilities[1] * (-ratio - back) - apart,
    )
    distance = ops.squeeze(forth + back, -1)
    return distance, ops.concatenate(by_logits, axis=0)

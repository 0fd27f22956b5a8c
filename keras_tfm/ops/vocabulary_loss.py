"""Softmax and loss over a vocabulary, without the array of all logits.

Of a loss that is one sum the derivative by each logit is known, up to a factor,
as soon as the logits of its position are. So a few positions at a time get
their logits, their loss and their share of the derivatives, and the logits are
forgotten: three matrix products in all, as with the whole array.

Shape letters: B batch, T length, E width, V vocabulary; N positions, B times T,
in K chunks of C.
"""

import math

from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share
from keras_tfm.ops.cross_entropy import FLAVOURS
from keras_tfm.ops.cross_entropy import label_logits
from keras_tfm.ops.cross_entropy import row_errors
from keras_tfm.ops.cross_entropy import row_losses
from keras_tfm.ops.cross_entropy import row_softmax
from keras_tfm.ops.tiles import cut
from keras_tfm.ops.tiles import join
from keras_tfm.ops.tiles import put_at

# So many logits are at hand at a time: 16 MiB in float32.
CHUNK_LOGITS = 2**22
_ROUND = 64
# A last chunk is filled up: of a small vocabulary it would be mostly filling.
_MOST_POSITIONS = 1024


def vocabulary_loss(
    vectors,
    table,
    labels,
    weights,
    label_smoothing=0.0,
    flavour="uniform",
    chunk_size=None,
):
    """Project vectors to a vocabulary and sum up their cross-entropy.

    The same as `smoothed_cross_entropy` of `vectors @ transpose(table)`, summed
    up, in memory that does not grow with `T` times `V`. Positions of weight 0
    count for nothing, whatever they hold, NaN included.

    Args:
        vectors: Float tensor `(B, T, E)`. The products are made in its dtype,
            all else in float32.
        table: Float tensor `(V, E)`, a row for each token.
        labels: Integer tensor `(B, T)`, ids in [0, V).
        weights: Float tensor `(B, T)`. Their gradient is not made.
        label_smoothing: Float in [0, 1). Defaults to `0.0`.
        flavour: See `smoothed_cross_entropy`. Defaults to `"uniform"`.
        chunk_size: Positive integer, the positions whose logits are at hand at
            a time. Defaults to as many as have four million logits, at most
            1,024 or all there are.

    Returns:
        Three float32 tensors: the loss, a scalar, the sum over positions of
        weight times smoothed loss; the unsmoothed loss of each position `(B,
        T)`; and `(B, T)`, 1 where the label has the highest logit and 0
        elsewhere. The last two are not multiplied by the weights, are 0 where
        those are, and have no gradient.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> loss, surprisals, hits = vocabulary_loss(
        ...     ops.ones((1, 2, 3)), ops.zeros((4, 3)), [[1, 2]], [[0.5, 0.5]]
        ... )
        >>> round(float(loss), 4)
        1.3863

    Reference:
        [Wijmans et al., 2024](https://arxiv.org/abs/2411.09009) cut the
        vocabulary instead, and make the logits once more for the gradient.
    """
    check_share("label_smoothing", label_smoothing)
    check_choice("flavour", flavour, FLAVOURS)
    if chunk_size is None:
        chunk_size = default_chunk_size(table.shape[0])
        if None not in vectors.shape[:-1]:
            positions = math.prod(vectors.shape[:-1])
            chunk_size = max(min(chunk_size, positions), 1)
    check_positive_int("chunk_size", chunk_size)
    shape = ops.shape(vectors)
    weights = ops.reshape(ops.cast(weights, "float32"), (-1,))
    # Weights such as one over a number of tokens would leave float16's range:
    # they join in at the end.
    scale = ops.max(ops.abs(weights), initial=0.0)
    weights = ops.divide_no_nan(weights, scale)
    labels = ops.reshape(ops.cast(labels, "int32"), (-1,))
    labels = ops.where(ops.not_equal(weights, 0.0), labels, 0)
    targets = (
        cut(labels, 0, chunk_size),
        cut(weights, 0, chunk_size),
        label_smoothing,
        flavour,
    )

    def loss_and_gradient(vectors, table):
        rows = ops.reshape(vectors, (-1, shape[-1]))
        sums = _pass(cut(rows, 0, chunk_size), table, *targets)
        loss, surprisals, hits, by_rows, by_table = sums
        length = ops.shape(rows)[0]

        def gradient(*args, upstream=None):
            (upstream, *_) = args or (upstream,)
            if isinstance(upstream, (tuple, list)):
                upstream = upstream[0]  # JAX gives those of all outputs.
            factor = upstream * scale
            by_vectors = ops.reshape(join(by_rows, 0, length), shape)
            return (
                ops.cast(by_vectors * factor, vectors.dtype),
                ops.cast(by_table * factor, table.dtype),
            )

        places = [join(x, 0, length) for x in (surprisals, hits)]
        places = [ops.reshape(x, shape[:-1]) for x in places]
        return (loss * scale, *places), gradient

    # New tensors: TensorFlow refuses variables here.
    return ops.custom_gradient(loss_and_gradient)(
        *(ops.reshape(x, ops.shape(x)) for x in (vectors, table))
    )


def default_chunk_size(vocabulary_size):
    """Return how many positions have about four million logits, or 1,024.

    Example:
        >>> default_chunk_size(10_000)
        384
    """
    rounds = max(CHUNK_LOGITS // vocabulary_size // _ROUND, 1)
    return min(rounds * _ROUND, _MOST_POSITIONS)


def _pass(rows, table, labels, weights, label_smoothing, flavour):
    """Sum up loss and derivatives over the chunks `(K, C, …)`."""
    in_products = ops.cast(table, rows.dtype)

    def add(chunk, sums):
        loss, surprisals, hits, by_rows, by_table = sums
        own_weights = weights[chunk]
        counted = ops.not_equal(own_weights, 0.0)
        real = ops.expand_dims(counted, -1)
        own_rows = ops.where(real, rows[chunk], 0.0)
        logits = ops.matmul(own_rows, ops.transpose(in_products))
        logits = ops.cast(logits, "float32")
        powers, total, log_total = row_softmax(logits)
        own = label_logits(labels[chunk], logits)
        losses = row_losses(own, logits, log_total, label_smoothing, flavour)
        hit = own >= ops.max(logits, axis=-1)
        errors = row_errors(
            labels[chunk], powers, total, label_smoothing, flavour
        )
        errors = errors * ops.expand_dims(own_weights, -1)
        errors = ops.cast(errors, rows.dtype)
        by_own = ops.matmul(errors, in_products)
        by_own_table = ops.matmul(ops.transpose(errors), own_rows)
        return (
            loss + ops.sum(losses * own_weights),
            put_at(surprisals, chunk, ops.where(counted, log_total - own, 0.0)),
            put_at(
                hits, chunk, ops.cast(ops.logical_and(hit, counted), "float32")
            ),
            put_at(by_rows, chunk, ops.cast(by_own, "float32")),
            by_table + ops.cast(by_own_table, "float32"),
        )

    nothing = (
        ops.zeros((), dtype="float32"),
        ops.zeros_like(weights),
        ops.zeros_like(weights),
        ops.zeros_like(rows, dtype="float32"),
        ops.zeros_like(table, dtype="float32"),
    )
    return ops.fori_loop(0, ops.shape(rows)[0], add, nothing)

"""What decoding computes: top-k, filters, penalties, and whose child is whose.

Shape letters: B batch, K beams, N any number of beams, T target length,
S source length, V vocabulary.
"""

import numpy as np
from keras import ops

# The score of what must not be chosen; scores are float32. Finite, so that no
# sum of it is NaN, and far below any log-probability of a sequence.
NEVER = float(np.finfo("float32").min) / 2**28


def is_possible(scores):
    """Tell the scores that can be chosen from `NEVER` and sums of it."""
    return scores > NEVER / 2


def largest(values, k):
    """Find the `k` largest values of each row; of equals the first.

    As `keras.ops.top_k`, and quicker for long rows: the largest values lie in
    the groups with the largest maxima, and only these are searched.

    Args:
        values: Float tensor `(N, V)`.
        k: Positive integer, at most V.

    Returns:
        A pair: the values `(N, k)`, largest first, and their int32 places.

    Example:
        >>> values, places = largest(ops.array([[3.0, 9.0, 9.0, 1.0]]), 2)
        >>> values.numpy().tolist(), places.numpy().tolist()
        ([[9.0, 9.0]], [[1, 2]])
    """
    length = values.shape[-1]
    groups = length // GROUP
    if groups <= k:
        found, places = ops.top_k(values, k)
        return found, ops.cast(places, "int32")
    _, chosen = ops.top_k(group_maxima(values), k)
    # In the order of the row, so that of equal values the first is found.
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)
    places = ops.expand_dims(chosen * GROUP, -1) + ops.arange(
        GROUP, dtype="int32"
    )
    places = ops.reshape(places, (-1, k * GROUP))
    if groups * GROUP < length:
        # What is left over makes no group, and is always searched.
        rest = ops.arange(groups * GROUP, length, dtype="int32")
        rest = ops.zeros_like(places[:, :1]) + rest
        places = ops.concatenate([places, rest], axis=1)
    found, inside = ops.top_k(select_columns(values, places), k)
    return found, select_columns(places, ops.cast(inside, "int32"))


# Divides the round sizes of vocabularies, and is near the size that costs
# least at 10,000 tokens and 8 candidates.
GROUP = 25


def group_maxima(values):
    """Return the maximum of every `GROUP` values: `(N, V)` to `(N, V // 25)`.

    The last `V % 25` values are left out.
    """
    groups = values.shape[-1] // GROUP
    values = values[:, : groups * GROUP]
    return ops.max(ops.reshape(values, (-1, groups, GROUP)), axis=-1)


def log_sum_exp(values):
    """Return `log(sum(exp(values)))` of each row, `(N, V)` to `(N, 1)`.

    As `keras.ops.logsumexp`; the maximum is found from the maxima of groups
    that `largest` needs too, so that a compiler computes them once.
    """
    groups = values.shape[-1] // GROUP
    if not groups:
        return ops.logsumexp(values, axis=-1, keepdims=True)
    peak = ops.max(group_maxima(values), axis=-1, keepdims=True)
    rest = values[:, groups * GROUP :]
    if rest.shape[-1]:
        peak = ops.maximum(peak, ops.max(rest, axis=-1, keepdims=True))
    total = ops.sum(ops.exp(values - peak), axis=-1, keepdims=True)
    return ops.log(total) + peak


def select_columns(values, places):
    """Pick values of each row: `(N, V)` and `(N, M)` to `(N, M)`.

    Example:
        >>> values = ops.array([[5, 6, 7], [8, 9, 4]])
        >>> select_columns(values, ops.array([[2], [0]])).numpy().tolist()
        [[7], [8]]
    """
    return select_beams(values, places)


def select_beams(values, beams):
    """Pick beams of each row: `(B, K, …)` and `(B, N)` to `(B, N, …)`.

    Example:
        >>> values = ops.array([[5, 6], [7, 8]])
        >>> select_beams(values, ops.array([[1, 1], [0, 1]])).numpy().tolist()
        [[6, 6], [7, 8]]
    """
    _, count, *rest = ops.shape(values)
    rows = ops.expand_dims(ops.arange(ops.shape(beams)[0], dtype="int32"), 1)
    # One gather over flat rows: several times as quick as one by batch.
    flat = ops.reshape(values, (-1, *rest))
    places = ops.reshape(rows * count + ops.cast(beams, "int32"), (-1,))
    return ops.reshape(
        ops.take(flat, places, axis=0), (-1, beams.shape[1], *rest)
    )


def keep_top_k(scores, k):
    """Forbid all but the `k` largest of each row, and what equals the last.

    Args:
        scores: Float tensor `(N, V)`.
        k: Positive integer; more than V keeps all.

    Returns:
        The scores, with `NEVER` at the others.

    Example:
        >>> keep_top_k(ops.array([[0.0, 3.0, 2.0]]), 2).numpy()[0, 1:].tolist()
        [3.0, 2.0]

    Reference:
        [Fan et al., 2018](https://arxiv.org/abs/1805.04833), section 5.4.
    """
    if k >= scores.shape[-1]:
        return scores
    lowest = largest(scores, k)[0][:, -1:]
    return ops.where(scores >= lowest, scores, NEVER)


def keep_top_p(scores, p):
    """Forbid all but the fewest tokens whose probabilities sum to `p`.

    Args:
        scores: Float tensor `(N, V)`, logits or log-probabilities.
        p: Float in (0, 1]. The likeliest token is always kept.

    Returns:
        The scores, with `NEVER` at the others.

    Example:
        >>> scores = ops.log(ops.array([[0.25, 0.5, 0.25]]))
        >>> bool(keep_top_p(scores, 0.4)[0, 0] == NEVER)
        True

    Reference:
        [Holtzman et al., 2020](https://arxiv.org/abs/1904.09751), section 3.1.
    """
    if p >= 1:
        return scores  # Rounded sums would drop the rarest tokens.
    ordered = ops.flip(ops.sort(scores, axis=-1), axis=-1)
    probabilities = ops.softmax(ordered, axis=-1)
    before = ops.cumsum(probabilities, axis=-1) - probabilities
    kept = ops.where(before < p, ordered, float("inf"))
    lowest = ops.min(kept, axis=-1, keepdims=True)
    return ops.where(scores >= lowest, scores, NEVER)


def repeated_ngrams(ids, index, size, vocabulary_size):
    """Find the tokens that would write an n-gram of a row once more.

    Args:
        ids: Integer tensor `(N, T)`, what has been written.
        index: Integer scalar tensor: how many tokens of it are written.
        size: Positive integer, the n of the n-gram.
        vocabulary_size: Positive integer V.

    Returns:
        Boolean tensor `(N, V)`.

    Example:
        >>> ids = ops.array([[7, 5, 7, 0]])
        >>> ops.where(repeated_ngrams(ids, 3, 2, 9)[0])[0].numpy().tolist()
        [5]
    """
    length = ids.shape[1]
    starts = length - size + 1
    if starts < 1:
        return ops.zeros((ops.shape(ids)[0], vocabulary_size), "bool")
    # Each place of an n-gram: its first tokens must be the last ones written.
    places = ops.arange(starts, dtype="int32")
    again = ops.expand_dims(places + size <= index, 0)
    for offset in range(size - 1):
        place = ops.maximum(index - size + 1 + offset, 0)
        written = ops.take(ids, ops.expand_dims(place, 0), axis=1)
        again = ops.logical_and(
            again, ops.equal(ids[:, offset : offset + starts], written)
        )
    last = ids[:, size - 1 :]
    # The others are sent to a column behind the vocabulary.
    column = ops.where(again, ops.cast(last, "int32"), vocabulary_size)
    rows = ops.expand_dims(ops.arange(ops.shape(ids)[0], dtype="int32"), 1)
    indices = ops.stack([ops.broadcast_to(rows, ops.shape(column)), column], -1)
    indices = ops.reshape(indices, (-1, 2))
    table = ops.zeros((ops.shape(ids)[0], vocabulary_size + 1), "int32")
    found = ops.scatter_update(table, indices, ops.ones_like(indices[:, 0]))
    return found[:, :vocabulary_size] > 0


def ancestor_mask(ancestors, index):
    """Let each beam see the cached tokens that it descends from.

    The cache holds K tokens of each position, one for each beam that was alive
    then: token `t * K + k` is that of beam k at position t. A beam that is
    copied or dropped moves no cache; its ancestors say which tokens are its
    own.

    Args:
        ancestors: Integer tensor `(B, K, T)`: the beam at each position that
            each beam descends from.
        index: Integer scalar tensor: the position of the newest token.

    Returns:
        Boolean tensor `(B, 1, K, T * K)`.

    Example:
        >>> mask = ancestor_mask(ops.array([[[0, 0], [0, 1]]]), 1)
        >>> mask.numpy().astype(int).tolist()
        [[[[1, 0, 1, 0], [1, 0, 0, 1]]]]
    """
    _, beams, length = ancestors.shape
    own = ops.equal(
        ops.expand_dims(ancestors, -1),
        ops.arange(beams, dtype=ancestors.dtype),
    )
    past = ops.arange(length, dtype="int32") <= ops.cast(index, "int32")
    own = ops.logical_and(own, ops.expand_dims(past, -1))
    return ops.reshape(own, (-1, 1, beams, length * beams))


def coverage_penalty(coverage, source_mask):
    """Sum over the source the log of what each token was attended to, up to 1.

    Args:
        coverage: Float tensor `(B, N, S)`: the sum over the target of the
            weights of each source token.
        source_mask: Boolean tensor `(B, S)`; `True` is a real token.

    Returns:
        Float tensor `(B, N)`, at most 0, to be added to a score.

    Reference:
        [Wu et al., 2016](https://arxiv.org/abs/1609.08144), equation 14,
        without its factor β.
    """
    # A token that nothing attended to would make it infinite.
    seen = ops.log(ops.clip(coverage, 1e-6, 1.0))
    mask = ops.expand_dims(source_mask, 1)
    return ops.sum(ops.where(mask, seen, 0.0), axis=-1)

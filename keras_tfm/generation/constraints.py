"""Constraints: tokens that must not come next, whatever the model says.

Shape letters: N rows times beams, T target length, V vocabulary.
"""

import abc

import numpy as np
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.ops.search import NEVER
from keras_tfm.ops.search import repeated_ngrams


class Constraint(abc.ABC):
    """Abstract: forbid tokens, given what has been written."""

    @abc.abstractmethod
    def __call__(self, scores, ids, index):
        """Return the scores, with `NEVER` at the forbidden tokens.

        Args:
            scores: Float32 tensor `(N, V)`, logits.
            ids: Int32 tensor `(N, T)`, what has been written.
            index: Integer scalar tensor: how many tokens that is.
        """


class BannedTokens(Constraint):
    """Forbid tokens everywhere.

    Args:
        token_ids: Sequence of integers.

    Raises:
        ValueError: If an id is negative, or, when it is called, not in the
            vocabulary.

    Example:
        >>> scores = BannedTokens([1])(ops.zeros((1, 3)), None, 0)
        >>> (scores > NEVER).numpy().tolist()
        [[True, False, True]]
    """

    def __init__(self, token_ids):
        self.token_ids = sorted({int(token) for token in token_ids})
        if self.token_ids and self.token_ids[0] < 0:
            raise ValueError(
                "`token_ids` must be ids of tokens, 0 or greater. Received: "
                f"{self.token_ids[0]}."
            )

    def __call__(self, scores, ids, index):
        size = scores.shape[-1]
        if self.token_ids and self.token_ids[-1] >= size:
            raise ValueError(
                f"`token_ids` must be less than {size}, the size of the "
                f"vocabulary. Received: {self.token_ids[-1]}."
            )
        banned = np.zeros(size, bool)
        banned[self.token_ids] = True
        return ops.where(ops.convert_to_tensor(banned), NEVER, scores)


class NoRepeatNgram(Constraint):
    """Forbid the token that would write an n-gram for the second time.

    Args:
        size: Positive integer, the n of the n-gram. 1 forbids every token
            that was written before.

    Example:
        >>> ids = ops.array([[2, 1, 2, 0]])
        >>> scores = NoRepeatNgram(2)(ops.zeros((1, 3)), ids, 3)
        >>> (scores > NEVER).numpy().tolist()
        [[True, False, True]]

    Reference:
        [Paulus et al., 2018](https://arxiv.org/abs/1705.04304), section 2.5,
        with trigrams.
    """

    def __init__(self, size):
        self.size = check_positive_int("size", size)

    def __call__(self, scores, ids, index):
        repeated = repeated_ngrams(ids, index, self.size, scores.shape[-1])
        return ops.where(repeated, NEVER, scores)

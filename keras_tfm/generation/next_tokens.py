"""What a model says of the next token, and what may be chosen of it.

Shape letters: B batch, K beams, V vocabulary.
"""

import numpy as np
from keras import ops

from keras_tfm.ops.search import GROUP
from keras_tfm.ops.search import NEVER
from keras_tfm.ops.search import group_maxima
from keras_tfm.ops.search import largest
from keras_tfm.ops.search import log_sum_exp
from keras_tfm.ops.search import select_columns


class NextTokens:
    """The tokens that can come next, for every beam of every row.

    Nothing of the size of the vocabulary is computed before it is asked for: a
    search needs the few likeliest tokens and one sum.

    Args:
        logits: Float tensor `(B, K, V)`.
        allowed: The same with `NEVER` where a token is forbidden, or `None`.
        forbidden: Sequence of pairs: an id that is forbidden too, and a boolean
            scalar tensor or `True`: whether it is.
    """

    def __init__(self, logits, allowed=None, forbidden=()):
        self.beams, self.size = logits.shape[1:]
        self._logits = self._flat(logits)
        self._allowed = self._logits if allowed is None else self._flat(allowed)
        self._forbidden = tuple(forbidden)
        self._normalizer = log_sum_exp(self._logits)

    def log_probabilities(self):
        """Return the log-probability of every token, `(B, K, V)`."""
        return self._by_row(self._logits - self._normalizer)

    def scores(self):
        """Return the log-probabilities, `NEVER` where one is forbidden."""
        tokens = ops.arange(self.size, dtype="int32")
        scores = self._forbid(self._allowed - self._normalizer, tokens)
        return self._by_row(scores)

    def of(self, tokens):
        """Return the log-probabilities of tokens `(B, K)`, `(B, K)`."""
        tokens = ops.reshape(tokens, (-1, 1))
        found = select_columns(self._logits, tokens) - self._normalizer
        return ops.reshape(found, (-1, self.beams))

    def likeliest(self, count):
        """Return the likeliest tokens of each beam; of equals the lowest id.

        Args:
            count: Positive integer n, at most V.

        Returns:
            A pair: scores `(B, K, n)`, best first, and int32 ids `(B, K, n)`.
            Where fewer tokens are allowed the last scores are `NEVER`.
        """
        # So many that as many are left when the forbidden ones are out.
        more = min(count + len(self._forbidden), self.size)
        found, tokens = largest(self._allowed, more)
        found = self._forbid(found - self._normalizer, tokens)
        found, places = ops.top_k(found, count)
        tokens = select_columns(tokens, ops.cast(places, "int32"))
        found = ops.maximum(found, NEVER)
        return self._by_row(found), self._by_row(tokens)

    def continuations(self, before, count):
        """Return the likeliest continuations of all beams of a row together.

        Args:
            before: Float32 tensor `(B, K)`, the score of each beam, which that
                of the token is added to.
            count: Positive integer n, at most K * V.

        Returns:
            Three tensors `(B, n)`, the best first: scores, of at least `NEVER`;
            int32 beams; int32 ids. Of equals the first beam comes first, then
            the lowest id.
        """
        offset = self._by_row(ops.reshape(before, (-1, 1)) - self._normalizer)
        more = count + self.beams * len(self._forbidden)
        groups = self.size // GROUP
        places = ops.arange(self.beams * self.size, dtype="int32")
        places = ops.zeros_like(offset[:, 0], "int32") + places
        if groups > more:
            peaks = self._by_row(group_maxima(self._allowed)) + offset
            peaks = ops.reshape(peaks, (-1, self.beams * groups))
            _, chosen = ops.top_k(peaks, more)
            places = self._places_of_groups(ops.cast(chosen, "int32"), groups)
        beams, tokens = places // self.size, places % self.size
        flat = ops.reshape(self._allowed, (-1, self.beams * self.size))
        scores = select_columns(flat, places) + select_columns(
            ops.squeeze(offset, -1), beams
        )
        scores = ops.maximum(self._forbid(scores, tokens), NEVER)
        scores, best = ops.top_k(scores, count)
        best = ops.cast(best, "int32")
        return scores, select_columns(beams, best), select_columns(tokens, best)

    def _places_of_groups(self, chosen, groups):
        """Return the places of chosen groups in a row of all beams."""
        starts = chosen // groups * self.size + chosen % groups * GROUP
        inside = ops.arange(GROUP, dtype="int32")
        places = ops.expand_dims(ops.sort(starts, axis=-1), -1) + inside
        places = ops.reshape(places, (-1, chosen.shape[1] * GROUP))
        if groups * GROUP == self.size:
            return places
        # What is left over makes no group, and is always searched.
        rest = np.arange(groups * GROUP, self.size)
        rest = np.arange(self.beams)[:, None] * self.size + rest
        rest = ops.convert_to_tensor(rest.reshape(1, -1).astype("int32"))
        rest = ops.zeros_like(places[:, :1]) + rest
        return ops.sort(ops.concatenate([places, rest], axis=1), axis=-1)

    def _forbid(self, scores, tokens):
        for token, is_forbidden in self._forbidden:
            hidden = ops.logical_and(ops.equal(tokens, token), is_forbidden)
            scores = ops.where(hidden, NEVER, scores)
        return scores

    def _flat(self, tensor):
        return ops.reshape(ops.cast(tensor, "float32"), (-1, self.size))

    def _by_row(self, tensor):
        return ops.reshape(tensor, (-1, self.beams, tensor.shape[-1]))

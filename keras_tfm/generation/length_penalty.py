"""Length penalties: what the score of a sequence is divided by."""

import abc

from keras import ops


class LengthPenalty(abc.ABC):
    """Abstract: a divisor for the summed log-probabilities of a sequence.

    It must grow or fall with the length throughout, so that a search knows
    what its unfinished sequences can still reach.
    """

    @abc.abstractmethod
    def __call__(self, length):
        """Return the divisor.

        Args:
            length: Integer tensor, tokens of a sequence with its end.

        Returns:
            Positive float32 tensor of the same shape.
        """


class GNMTLengthPenalty(LengthPenalty):
    """`((5 + length) / 6) ** alpha`.

    Args:
        alpha: Float. Above 0 favours long sequences, below 0 short ones.
            Defaults to `0.6`.

    Example:
        >>> [round(float(GNMTLengthPenalty(0.6)(n)), 3) for n in (10, 20, 50)]
        [1.733, 2.354, 3.779]

    Reference:
        [Wu et al., 2016](https://arxiv.org/abs/1609.08144), equation 14.
    """

    def __init__(self, alpha=0.6):
        self.alpha = alpha

    def __call__(self, length):
        return ((5.0 + ops.cast(length, "float32")) / 6.0) ** self.alpha


class MeanLengthPenalty(LengthPenalty):
    """`length ** alpha`; with 1 the score is the mean of the tokens'.

    Args:
        alpha: Float. Defaults to `1.0`.

    Example:
        >>> float(MeanLengthPenalty()(7))
        7.0
    """

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def __call__(self, length):
        return ops.cast(length, "float32") ** self.alpha


class NoLengthPenalty(LengthPenalty):
    """1: the score is the log-probability of the sequence.

    Example:
        >>> float(NoLengthPenalty()(7))
        1.0
    """

    def __call__(self, length):
        return ops.ones_like(ops.cast(length, "float32"))

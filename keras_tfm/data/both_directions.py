"""Bidirectional training: at first the pairs are read in both directions."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_whole_number

Ids = Sequence[np.ndarray]
Rows = tuple[Ids, Ids]

# Other random numbers than those of the order of the pairs.
_STREAM = 1


class BothDirections:
    """Turn half of the pairs around in each of the first epochs.

    Bidirectional training (Ding et al., EMNLP 2021): a model that first learns
    to translate both ways, and then the one way that is wanted, has seen twice
    as many pairs and learns a small corpus by heart later. The paper gives it
    the first third of the updates, on the pairs and the turned pairs one after
    the other. Here an epoch turns half of the pairs and the next one the other
    half, so that two epochs hold each pair once in each direction and have as
    many pairs as ever. As in the paper no token says which way to go: the
    language of the source does. Both sides need one vocabulary.

    It is a `resample` of `PackedBatches`: the rows are a pure function of the
    seed and the epoch.

    Args:
        source_ids: Sequence of integer arrays `(length,)`, one a pair.
        target_ids: Sequence of integer arrays, as many.
        epochs: Positive integer. From this epoch on no pair is turned.
        resample: Function of an epoch that returns the rows to turn, such as
            other subwords of the pairs. Defaults to `None`: the ids as given.
        seed: Non-negative integer. Defaults to `0`.

    Example:
        >>> sources = [np.array([5]), np.array([6])]
        >>> targets = [np.array([7]), np.array([8])]
        >>> turn = BothDirections(sources, targets, epochs=2)
        >>> [[int(row[0]) for row in side] for side in turn(0)]
        [[5, 8], [7, 6]]
        >>> [[int(row[0]) for row in side] for side in turn(1)]
        [[7, 6], [5, 8]]
        >>> [[int(row[0]) for row in side] for side in turn(2)]
        [[5, 6], [7, 8]]
    """

    def __init__(
        self,
        source_ids: Ids,
        target_ids: Ids,
        epochs: int,
        *,
        resample: Callable[[int], Rows] | None = None,
        seed: int = 0,
    ) -> None:
        self.epochs = check_positive_int("epochs", epochs)
        self.seed = check_whole_number("seed", seed)
        self._rows = (source_ids, target_ids)
        self._resample = resample

    def __call__(self, epoch: int) -> Rows:
        """Return the source and target ids of an epoch, counted from 0."""
        sources, targets = (
            self._rows if self._resample is None else self._resample(epoch)
        )
        if epoch >= self.epochs:
            return sources, targets
        first, second = divmod(epoch, 2)
        random = np.random.default_rng([self.seed, first, _STREAM])
        turned = random.permutation(len(sources)) % 2 == second
        both = list(zip(sources, targets, strict=True))
        turned_pairs = [
            pair[::-1] if turn else pair
            for pair, turn in zip(both, turned, strict=True)
        ]
        sources, targets = zip(*turned_pairs, strict=True)
        return sources, targets

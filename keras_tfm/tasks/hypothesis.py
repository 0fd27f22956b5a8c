"""One of the translations that a search found."""

from __future__ import annotations

import dataclasses

from keras_tfm.ops.search import NEVER


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A text and its score.

    Attributes:
        text: String.
        score: Float: the log-probability of its tokens, the end included,
            divided by the length penalty of the search.
    """

    text: str
    score: float


def is_hypothesis(score: float) -> bool:
    """Whether a score is not that of a place left empty."""
    return score > NEVER / 2

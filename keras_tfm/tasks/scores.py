"""Scores of translations: BLEU and chrF by sacrebleu, and exact match."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Score:
    """A score with what is needed to repeat it.

    Attributes:
        name: String, such as `"BLEU"`.
        value: Float, in percent.
        signature: String, sacrebleu's signature; empty for exact match.
    """

    name: str
    value: float
    signature: str = ""

    def __str__(self) -> str:
        signature = f"  {self.signature}" if self.signature else ""
        return f"{self.name} = {self.value:.2f}{signature}"


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str | None = None,
    lowercase: bool = False,
) -> Score:
    """Corpus BLEU.

    Args:
        hypotheses: The translations.
        references: One right translation for each.
        tokenize: Name of a sacrebleu tokenizer, such as `"13a"`, `"zh"` or
            `"none"`. Defaults to sacrebleu's own default, `"13a"`.
        lowercase: Boolean. Whether case counts for nothing.

    Example:
        >>> bleu(["a b c d e"], ["a b c d e"]).value
        100.0
    """
    from sacrebleu.metrics import BLEU

    # Text that is tokenized already is meant to be scored as it is.
    options: dict[str, Any] = {"lowercase": lowercase, "force": True}
    if tokenize is not None:
        options["tokenize"] = tokenize
    return _corpus_score("BLEU", BLEU(**options), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF2, on characters.

    Example:
        >>> chrf(["a b c d e"], ["a b c d e"]).value
        100.0
    """
    from sacrebleu.metrics import CHRF

    return _corpus_score("chrF", CHRF(), hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Share of the translations that equal their reference, in percent.

    Example:
        >>> exact_match(["a", "b"], ["a", "c"]).value
        50.0
    """
    _check_counts(hypotheses, references)
    right = sum(
        hypothesis == reference
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    )
    return Score("exact match", 100.0 * right / len(references))


def _corpus_score(
    name: str,
    metric: Any,
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> Score:
    _check_counts(hypotheses, references)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    # A rounding above 100 would look like an error of ours.
    value = min(round(result.score, 6), 100.0)
    return Score(name, value, str(metric.get_signature()))


def _check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references) or not len(references):
        raise ValueError(
            "There must be one reference for each translation, and at least "
            f"one. Received: {len(hypotheses)} translations and "
            f"{len(references)} references."
        )

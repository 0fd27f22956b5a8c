"""The results of validations: their names, the best one, a line for each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

_START = "validation_"
# Also where nothing is translated.
_ALWAYS = ("validation_loss", "validation_accuracy")
_BY_METRIC = {
    "bleu": ("validation_bleu", "validation_chrf"),
    "exact": ("validation_exact_match",),
    "loss": (),
}
_WRITTEN = {"bleu": "BLEU", "chrf": "chrF"}
_FORMATS = {"loss": ".4f", "accuracy": ".1%"}


@dataclasses.dataclass(frozen=True)
class Standing:
    """The best result so far.

    Attributes:
        step: Integer, the update it was measured after.
        value: Float.
        since: Integer, how many results came after it.
    """

    step: int
    value: float
    since: int


def result_names(metric: str) -> tuple[str, ...]:
    """Return what is measured, in front what decides unless told otherwise.

    Args:
        metric: `"bleu"`, `"exact"` or `"loss"`.

    Example:
        >>> result_names("exact")
        ('validation_exact_match', 'validation_loss', 'validation_accuracy')
    """
    return (*_BY_METRIC[metric], *_ALWAYS)


def standing(log: Path, monitor: str) -> Standing | None:
    """Find the best result in the log of a training.

    The log knows the results of earlier sessions, too.

    Args:
        log: Path of the `training_log.csv`.
        monitor: Name of the result that decides.

    Returns:
        The best one, the earlier of two equals; `None` before the first.
    """
    from keras_tfm.training.training_log_file import read_training_log

    if not log.is_file():
        return None
    columns = read_training_log(log)
    sign = -1.0 if monitor.endswith("loss") else 1.0
    best, since = None, 0
    for step, value in zip(
        columns["step"], columns.get(monitor, ()), strict=False
    ):
        if value is None or step is None:
            continue
        since += 1
        if not math.isnan(value) and (
            best is None or sign * value > sign * best[1]
        ):
            best, since = (int(step), value), 0
    return None if best is None else Standing(*best, since)


def result_word(name: str) -> str:
    """Return how a result is called.

    Example:
        >>> result_word("validation_bleu"), result_word("validation_loss")
        ('BLEU', 'loss')
    """
    word = name.removeprefix(_START)
    return _WRITTEN.get(word, word.replace("_", " "))


def result_text(name: str, value: float) -> str:
    """Write a result.

    Example:
        >>> result_text("validation_bleu", 35.2071)
        'BLEU 35.21'
        >>> result_text("validation_accuracy", 0.6118)
        'accuracy 61.2%'
    """
    word = result_word(name)
    return f"{word} {value:{_FORMATS.get(word, '.2f')}}"


def result_line(
    result: Mapping[str, float], monitor: str, is_best: bool
) -> str:
    """Write all results of a validation in one line.

    Args:
        result: Dictionary of the `step` and the results.
        monitor: Name of the result that decides.
        is_best: Boolean. Whether it is better than all before.

    Example:
        >>> result = {"step": 1200, "validation_loss": 2.03}
        >>> result_line(result, "validation_loss", is_best=True)
        'step 1,200 · validation loss 2.0300 (best so far)'
    """
    parts = []
    for name, value in result.items():
        if name != "step":
            best = " (best so far)" if is_best and name == monitor else ""
            parts.append(result_text(name, value) + best)
    return f"step {int(result['step']):,} · validation {' · '.join(parts)}"

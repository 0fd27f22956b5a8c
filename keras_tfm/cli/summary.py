"""What a training is about to do, before it does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Any

from keras_tfm.cli.console import print_facts

if TYPE_CHECKING:
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.training_batches import Batches
    from keras_tfm.tasks.translation import Translator

_OPTIMIZERS = {"adam": "Adam", "adamw": "AdamW", "muon": "Muon"}


def print_summary(
    translator: Translator,
    batches: Batches,
    settings: TrainingSettings,
    *,
    data: str,
    end: str,
    device: str,
    languages: str = "",
    validation: str = "",
) -> None:
    """Print data, model, shapes and settings as a table.

    Args:
        translator: What is trained.
        batches: Its batches.
        settings: Its settings.
        data: String. Where the pairs come from.
        end: String. When the training stops.
        device: String. What it runs on.
        languages: String. What is translated, if that is known.
        validation: String, see `validating`, if there is any.
    """
    updates = max(batches.steps_per_epoch // settings.accumulation_steps, 1)
    facts = {
        "data": data,
        "languages": languages,
        "pairs": _pairs(batches),
        "directions": _directions(settings),
        "vocabulary": _vocabulary(translator),
        "subwords": _subwords(settings),
        "model": _model(translator),
        "batches": _batches(batches, settings),
        "padding": f"{batches.padding_share:.1%} of all positions",
        "steps": f"{end}; {updates:,} in an epoch",
        "optimizer": _optimizer(settings),
        "learning rate": _rate(settings),
        "average": _average(settings),
        "validation": validation,
        "device": device,
        "XLA": f"compiles {_programs(len(batches.shapes))}",
    }
    print_facts(
        "Training", {name: fact for name, fact in facts.items() if fact}
    )


def ending(steps: int | None, max_minutes: float | None) -> str:
    """Say when a training stops.

    Example:
        >>> ending(1000, None), ending(None, 2.5)
        ('1,000', 'as many as 2.5 minutes allow')
    """
    if max_minutes is None:
        return f"{steps:,}"
    if steps is None:
        return f"as many as {max_minutes:g} minutes allow"
    return f"{steps:,}, or as many as {max_minutes:g} minutes allow"


def validating(num_pairs: int, plan: Mapping[str, Any], metric: str) -> str:
    """Say when a translator is validated, and what comes of it.

    Args:
        num_pairs: Integer, the validation pairs.
        plan: Dictionary of `every_steps` and `patience`, as of a
            `ValidationPlan`; empty for a validation at the end.
        metric: String. What decides.

    Example:
        >>> validating(1014, {}, "")
        '1,014 pairs, at the end'
        >>> validating(9, {"every_steps": 500, "patience": None}, "loss")
        '9 pairs, every 500 steps; the weights that are best by loss stay'
    """
    if not plan:
        return f"{num_pairs:,} pairs, at the end"
    every = "every epoch"
    if plan["every_steps"] is not None:
        every = f"every {plan['every_steps']:,} steps"
    stop = ""
    if plan["patience"] is not None:
        stop = f"; stops after {plan['patience']} in a row that are not better"
    return (
        f"{num_pairs:,} pairs, {every}; the weights that are best by {metric} "
        f"stay{stop}"
    )


def _pairs(batches: Batches) -> str:
    left_out = ""
    if batches.num_dropped:
        left_out = f" ({batches.num_dropped:,} are too long and left out)"
    return f"{batches.num_pairs:,}{left_out}"


def _vocabulary(translator: Translator) -> str:
    source = translator.source_tokenizer
    target = translator.target_tokenizer
    if source is target:
        return f"{source.vocabulary_size:,} entries for both sides"
    return (
        f"{source.vocabulary_size:,} entries for the source, "
        f"{target.vocabulary_size:,} for the target"
    )


def _model(translator: Translator) -> str:
    arguments = translator.model.arguments
    return (
        f"{translator.model.count_params():,} parameters: "
        f"{arguments['num_layers']}+{arguments['num_decoder_layers']} layers, "
        f"hidden_dim {arguments['hidden_dim']}, "
        f"intermediate_dim {arguments['intermediate_dim']}, "
        f"{arguments['num_heads']} heads"
    )


def _directions(settings: TrainingSettings) -> str:
    if not settings.bidirectional_epochs:
        return ""
    return (
        f"both until epoch {settings.bidirectional_epochs:,} has ended, then "
        "from source to target alone"
    )


def _subwords(settings: TrainingSettings) -> str:
    if not settings.subword_dropout:
        return ""
    return (
        f"{settings.subword_dropout:.1%} of the merges left out, other ones in "
        "each epoch"
    )


def _batches(batches: Batches, settings: TrainingSettings) -> str:
    shapes = ", ".join(
        f"{rows} rows × ({source} + {target})"
        for rows, source, target in batches.shapes
    )
    packed = "several pairs a row" if settings.batching == "packed" else ""
    together = ""
    if settings.accumulation_steps > 1:
        together = f"{settings.accumulation_steps} batches make an update"
    return "; ".join(part for part in (shapes, packed, together) if part)


def _optimizer(settings: TrainingSettings) -> str:
    name = _OPTIMIZERS.get(settings.optimizer, settings.optimizer)
    parts = [f"{name}, beta_2 {settings.beta_2:g}"]
    if settings.weight_decay:
        parts.append(f"weight decay {settings.weight_decay:g}")
    if settings.clip_norm is not None:
        parts.append(f"gradients up to norm {settings.clip_norm:g}")
    if settings.label_smoothing:
        parts.append(f"label smoothing {settings.label_smoothing:g}")
    return ", ".join(parts)


def _average(settings: TrainingSettings) -> str:
    if settings.ema_momentum:
        return f"moving, with momentum {settings.ema_momentum:g}"
    if not settings.average_last:
        return ""
    every = "one an epoch"
    if settings.snapshot_steps is not None:
        every = f"one every {settings.snapshot_steps:,} steps"
    return f"of the last {settings.average_last} snapshots, {every}"


def _rate(settings: TrainingSettings) -> str:
    fall = "falls with 1/sqrt(step)"
    if settings.decay_steps is not None:
        fall = f"falls along a cosine until step {settings.decay_steps:,}"
    return (
        f"rises to {settings.peak:g} in {settings.warmup_steps:,} steps, then "
        f"{fall}"
    )


def _programs(number: int) -> str:
    if number == 1:
        return "1 program, for the one shape"
    return f"{number} programs, one for each shape"

"""What a training is about to do, before it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_tfm.cli.console import print_facts

if TYPE_CHECKING:
    from keras_tfm.data.batching import BucketedBatches
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.translation import Translator


def print_summary(
    translator: Translator,
    batches: BucketedBatches,
    settings: TrainingSettings,
    *,
    data: str,
    end: str,
    device: str,
    languages: str = "",
) -> None:
    """Print data, model and shapes as a table.

    Args:
        translator: What is trained.
        batches: Its batches.
        settings: Its settings.
        data: String. Where the pairs come from.
        end: String. When the training stops.
        device: String. What it runs on.
        languages: String. What is translated, if that is known.
    """
    facts = {
        "data": data,
        "languages": languages,
        "pairs": _pairs(batches),
        "vocabulary": _vocabulary(translator),
        "model": _model(translator),
        "batches": _batches(batches),
        "padding": f"{batches.padding_share:.1%} of all positions",
        "steps": f"{end}; {batches.steps_per_epoch:,} in an epoch",
        "learning rate": _rate(settings),
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


def _pairs(batches: BucketedBatches) -> str:
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


def _batches(batches: BucketedBatches) -> str:
    return ", ".join(
        f"{rows} rows × ({source} + {target})"
        for rows, source, target in batches.shapes
    )


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

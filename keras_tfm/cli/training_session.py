"""One session of `keras-tfm train`: begin or resume, train, save, score."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import typer

from keras_tfm.cli.console import note
from keras_tfm.cli.console import say
from keras_tfm.cli.summary import ending
from keras_tfm.cli.summary import print_summary
from keras_tfm.cli.tensorflow_setup import start_tensorflow
from keras_tfm.cli.training_folder import CHECKPOINT_FILE
from keras_tfm.cli.training_folder import TrainingPlan
from keras_tfm.cli.training_folder import fingerprint
from keras_tfm.cli.training_folder import remove_training
from keras_tfm.cli.translate import check_pairs

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.translation import Translator

_CHECKPOINT_MINUTES = 2.0
_SHORTEST_SOURCE = 16


def begin_training(
    plan: TrainingPlan, folder: Path, arguments: dict[str, Any]
) -> None:
    """Train a new translator.

    Args:
        plan: What to train on, and how.
        folder: Path. An older training in it is replaced.
        arguments: Of `Translator.from_pairs`: tokenizer and model.
    """
    device = start_tensorflow(plan.settings.get("seed", 0))
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.translation import Translator
    from keras_tfm.tasks.translator_folder import save_translator

    # What can be wrong is looked at before the tokenizer, which takes longest.
    TrainingSettings(**plan.settings)
    _check_model(arguments)
    pairs = plan.data.read()
    validation = _read_validation(plan)
    longest = plan.settings["max_sequence_length"]
    translator = Translator.from_pairs(
        pairs,
        max_target_length=longest,
        source_lengths=source_lengths(longest),
        **arguments,
    )
    remove_training(folder)
    save_translator(translator, folder, weights=False)
    # Last: where it is, a training can be resumed.
    plan = dataclasses.replace(plan, fingerprint=fingerprint(pairs))
    plan.save(folder)
    _run(translator, plan, folder, pairs, validation, device)


def resume_training(plan: TrainingPlan, folder: Path) -> None:
    """Go on with a training from its last checkpoint.

    Args:
        plan: What the training began with.
        folder: Path of the training.

    Raises:
        ValueError: If the training pairs have changed since.
    """
    device = start_tensorflow(plan.settings.get("seed", 0))
    from keras_tfm.tasks.translation import Translator

    pairs = plan.data.read()
    if fingerprint(pairs) != plan.fingerprint:
        raise ValueError(
            f"{pairs.name}: the pairs have changed since the training began. "
            "Bring them back, or begin anew with --overwrite."
        )
    translator = Translator.load(folder, weights=False)
    if not (folder / CHECKPOINT_FILE).is_file():
        note("there was no checkpoint yet: the training starts at step 0.")
    plan.save(folder)
    _run(translator, plan, folder, pairs, _read_validation(plan), device)


def source_lengths(longest: int) -> tuple[int, ...]:
    """Return the lengths that sources are padded to, each twice the one before.

    Example:
        >>> source_lengths(100)
        (16, 32, 64, 100)
    """
    lengths = []
    length = _SHORTEST_SOURCE
    while length < longest:
        lengths.append(length)
        length *= 2
    return (*lengths, longest)


def _run(
    translator: Translator,
    plan: TrainingPlan,
    folder: Path,
    pairs: SentencePairs,
    validation: SentencePairs | None,
    device: str,
) -> None:
    from keras_tfm.cli.interruption import StopOnSignal
    from keras_tfm.cli.progress import TrainingProgress
    from keras_tfm.tasks.settings import TrainingSettings

    if validation is not None:
        check_pairs(translator, validation)
    settings = TrainingSettings(**plan.settings)
    steps, max_minutes = plan.ends["steps"], plan.ends["max_minutes"]
    batches = translator.batches(pairs, settings)
    print_summary(
        translator,
        batches,
        settings,
        data=pairs.name,
        end=ending(steps, max_minutes),
        device=device,
    )
    progress = TrainingProgress(
        steps, max_minutes, batches.tokens_per_step, len(batches.shapes)
    )
    with StopOnSignal() as stop:
        try:
            result = translator.fit(
                batches,
                settings,
                steps=steps,
                max_minutes=max_minutes,
                folder=folder,
                resume=(folder / CHECKPOINT_FILE).is_file(),
                checkpoint_minutes=plan.ends["checkpoint_minutes"]
                or _CHECKPOINT_MINUTES,
                callbacks=[stop, progress],
            )
        finally:
            progress.close()
    if stop.received is not None:
        note(
            f"stopped after step {result['steps']:,}. Go on with: "
            f"keras-tfm train --resume --folder {folder}"
        )
        raise typer.Exit(stop.exit_code)
    translator.save(folder)
    say(f"Saved the translator after step {result['steps']:,} to {folder}.")
    if validation is not None:
        for score in translator.evaluate(validation, **plan.scoring):
            say(f"validation {score}")
    say(f'Use it: keras-tfm translate --folder {folder} "..."')


def _read_validation(plan: TrainingPlan) -> SentencePairs | None:
    return plan.validation.read() if plan.validation.is_given() else None


def _check_model(arguments: dict[str, Any]) -> None:
    from keras_tfm.checks import check_divisible
    from keras_tfm.checks import check_positive_int
    from keras_tfm.models.presets import preset_arguments

    preset = arguments.get("preset")
    sizes = {
        "hidden_dim": 512,
        "num_heads": 8,
        **(preset_arguments(preset) if preset else {}),
        **arguments,
    }
    for name in ("hidden_dim", "num_heads"):
        check_positive_int(name, sizes[name])
    check_divisible(
        "hidden_dim", sizes["hidden_dim"], "num_heads", sizes["num_heads"]
    )

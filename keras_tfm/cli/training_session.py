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
    from keras_tfm.data.batching import BucketedBatches
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.settings import TrainingSettings
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
    session = _Session.of(plan, translator, pairs, validation, device)
    # From here on all is known to be right: an older training may go.
    remove_training(folder)
    save_translator(translator, folder, weights=False)
    # Last: where it is, a training can be resumed.
    dataclasses.replace(plan, fingerprint=fingerprint(pairs)).save(folder)
    session.run(folder)


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
    session = _Session.of(
        plan, translator, pairs, _read_validation(plan), device
    )
    if not (folder / CHECKPOINT_FILE).is_file():
        note("there was no checkpoint yet: the training starts at step 0.")
    plan.save(folder)
    session.run(folder)


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


@dataclasses.dataclass(frozen=True)
class _Session:
    """All that a session needs, read and checked."""

    plan: TrainingPlan
    translator: Translator
    settings: TrainingSettings
    batches: BucketedBatches
    validation: SentencePairs | None
    data: str
    device: str

    @classmethod
    def of(
        cls,
        plan: TrainingPlan,
        translator: Translator,
        pairs: SentencePairs,
        validation: SentencePairs | None,
        device: str,
    ) -> _Session:
        from keras_tfm.tasks.settings import TrainingSettings

        settings = TrainingSettings(**plan.settings)
        if validation is not None:
            check_pairs(translator, validation)
        return cls(
            plan=plan,
            translator=translator,
            settings=settings,
            batches=translator.batches(pairs, settings),
            validation=validation,
            data=pairs.name,
            device=device,
        )

    def run(self, folder: Path) -> None:
        """Train, save and score; a signal ends it with a checkpoint."""
        print_summary(
            self.translator,
            self.batches,
            self.settings,
            data=self.data,
            end=ending(self.plan.ends["steps"], self.plan.ends["max_minutes"]),
            device=self.device,
        )
        step = self._fit(folder)
        self.translator.save(folder)
        say(f"Saved the translator after step {step:,} to {folder}.")
        if self.validation is not None:
            for score in self.translator.evaluate(
                self.validation, **self.plan.scoring
            ):
                say(f"validation {score}")
        say(f'Use it: keras-tfm translate --folder {folder} "..."')

    def _fit(self, folder: Path) -> int:
        from keras_tfm.cli.interruption import StopOnSignal
        from keras_tfm.cli.progress import TrainingProgress

        ends = self.plan.ends
        progress = TrainingProgress(
            ends["steps"],
            ends["max_minutes"],
            self.batches.tokens_per_step,
            len(self.batches.shapes),
        )
        with StopOnSignal() as stop:
            try:
                result = self.translator.fit(
                    self.batches,
                    self.settings,
                    steps=ends["steps"],
                    max_minutes=ends["max_minutes"],
                    folder=folder,
                    resume=(folder / CHECKPOINT_FILE).is_file(),
                    checkpoint_minutes=ends["checkpoint_minutes"]
                    or _CHECKPOINT_MINUTES,
                    callbacks=[stop, progress],
                )
            finally:
                progress.close()
        step = int(result["steps"])
        if stop.received is not None:
            note(
                f"stopped after step {step:,}. Go on with: "
                f"keras-tfm train --resume --folder {folder}"
            )
            raise typer.Exit(stop.exit_code)
        if "loss" not in result:
            note(f"step {step:,} was reached before: nothing to train.")
        return step


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

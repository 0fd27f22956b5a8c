"""One session of `keras-tfm train`: begin or resume, train, save, score."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import typer

from keras_tfm.cli.console import note
from keras_tfm.cli.console import say
from keras_tfm.cli.curves import write_curves
from keras_tfm.cli.recipe import write_recipe
from keras_tfm.cli.summary import ending
from keras_tfm.cli.summary import print_summary
from keras_tfm.cli.summary import validating
from keras_tfm.cli.tensorflow_setup import start_tensorflow
from keras_tfm.cli.train_request import completed
from keras_tfm.cli.train_request import options_of
from keras_tfm.cli.training_folder import CHECKPOINT_FILE
from keras_tfm.cli.training_folder import LOG_FILE
from keras_tfm.cli.training_folder import RECIPE_FILE
from keras_tfm.cli.training_folder import TrainingPlan
from keras_tfm.cli.training_folder import fingerprint
from keras_tfm.cli.training_folder import remove_training
from keras_tfm.cli.translate import check_pairs
from keras_tfm.cli.validation_results import Standing
from keras_tfm.cli.validation_results import result_line
from keras_tfm.cli.validation_results import result_text
from keras_tfm.cli.validation_results import result_word
from keras_tfm.cli.validation_results import standing

if TYPE_CHECKING:
    from keras_tfm.cli.progress import TrainingProgress
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.training_batches import Batches
    from keras_tfm.tasks.translation import Translator
    from keras_tfm.tasks.validating import ValidationPlan

_SHORTEST_SOURCE = 16
_RECIPE_HEADING = """\
Every option of this training, defaults included. To train like this again:
keras-tfm train {recipe} --folder ANOTHER"""


def begin_training(plan: TrainingPlan, folder: Path) -> None:
    """Train a new translator.

    Args:
        plan: What to train on, and how.
        folder: Path. An older training in it is replaced.
    """
    device = start_tensorflow(plan.settings.get("seed", 0))
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.translation import Translator
    from keras_tfm.tasks.translator_folder import save_translator

    # What can be wrong is looked at before the tokenizer, which takes longest.
    TrainingSettings(**plan.settings)
    _check_model(plan.arguments)
    pairs = plan.data.read()
    validation = _read_validation(plan)
    longest = plan.settings["max_sequence_length"]
    translator = Translator.from_pairs(
        pairs,
        max_target_length=longest,
        source_lengths=source_lengths(longest),
        **plan.arguments,
    )
    plan = completed(plan, translator.model.arguments)
    plan = dataclasses.replace(plan, fingerprint=fingerprint(pairs))
    session = _Session.of(plan, translator, pairs, validation, device)
    # From here on all is known to be right: an older training may go.
    remove_training(folder)
    save_translator(translator, folder, weights=False)
    _write_recipe(plan, folder)
    # Last: where it is, a training can be resumed.
    plan.save(folder)
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
    _write_recipe(plan, folder)
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
    batches: Batches
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
            validation=self._validation_fact(),
        )
        step = self._fit(folder)
        best = self._best(folder)
        if best is not None:
            self._say_best(best)
        self.translator.save(folder)
        say(f"Saved the translator after step {step:,} to {folder}.")
        scoring = self.plan.scoring
        if self.validation is not None and scoring["metric"] != "loss":
            for score in self.translator.evaluate(self.validation, **scoring):
                say(f"validation {score}")
        write_curves(folder)
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
                    checkpoint_minutes=ends["checkpoint_minutes"],
                    validation=self._validation_plan(folder, progress),
                    tensorboard=self.plan.tensorboard,
                    callbacks=[stop, progress],
                )
            finally:
                progress.close()
        step = int(result["steps"])
        if stop.received is not None:
            write_curves(folder)
            note(
                f"stopped after step {step:,}. Go on with: "
                f"keras-tfm train --resume --folder {folder}"
            )
            raise typer.Exit(stop.exit_code)
        if "loss" not in result:
            note(f"step {step:,} was reached before: nothing to train.")
        return step

    def _validation_plan(
        self, folder: Path, progress: TrainingProgress
    ) -> ValidationPlan | None:
        from keras_tfm.tasks.validating import ValidationPlan

        if not self.plan.validating:
            return None
        monitor = self.plan.validating["monitor"]

        def show(result: dict[str, float]) -> None:
            # It is in the log already.
            best = self._best(folder)
            is_best = best is not None and best.step == result["step"]
            progress.show_result(result_line(result, monitor, is_best))

        return ValidationPlan(
            self.translator,
            self.validation,
            **self.plan.scoring,
            **self.plan.validating,
            on_result=show,
        )

    def _validation_fact(self) -> str:
        if self.validation is None:
            return ""
        plan = self.plan.validating
        word = result_word(plan["monitor"]) if plan else ""
        return validating(len(self.validation), plan, word)

    def _best(self, folder: Path) -> Standing | None:
        if not self.plan.validating:
            return None
        return standing(folder / LOG_FILE, self.plan.validating["monitor"])

    def _say_best(self, best: Standing) -> None:
        plan = self.plan.validating
        if plan["patience"] is not None and best.since >= plan["patience"]:
            many = "validation" if best.since == 1 else "validations"
            say(
                f"Nothing better in the last {best.since} {many}: it ends here."
            )
        say(
            f"Best was step {best.step:,}, with validation "
            f"{result_text(plan['monitor'], best.value)}: the translator has "
            "its weights."
        )


def _write_recipe(plan: TrainingPlan, folder: Path) -> None:
    path = folder / RECIPE_FILE
    heading = _RECIPE_HEADING.format(recipe=path)
    write_recipe(path, options_of(plan), heading)


def _read_validation(plan: TrainingPlan) -> SentencePairs | None:
    return plan.validation.read() if plan.validation.is_given() else None


def _check_model(arguments: dict[str, Any]) -> None:
    from keras_tfm.checks import check_divisible
    from keras_tfm.checks import check_positive_int
    from keras_tfm.checks import check_share
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
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        check_share(name, sizes.get(name, 0.0))
    check_divisible(
        "hidden_dim", sizes["hidden_dim"], "num_heads", sizes["num_heads"]
    )

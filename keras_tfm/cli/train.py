"""`keras-tfm train`: the options of a training, and of its resumption."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras_tfm.cli.train_options as options
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.cli.data_options import DataSource
from keras_tfm.cli.data_options import SourceLanguageOption
from keras_tfm.cli.data_options import SourceOption
from keras_tfm.cli.data_options import SplitOption
from keras_tfm.cli.data_options import TargetLanguageOption
from keras_tfm.cli.data_options import TargetOption
from keras_tfm.cli.data_options import TfdsOption
from keras_tfm.cli.data_options import TranslateFolderOption
from keras_tfm.cli.data_options import TsvOption
from keras_tfm.cli.evaluate import LowercaseOption
from keras_tfm.cli.evaluate import MetricOption
from keras_tfm.cli.evaluate import TokenizeOption
from keras_tfm.cli.training_folder import TrainingPlan
from keras_tfm.cli.training_folder import check_new
from keras_tfm.cli.training_session import begin_training
from keras_tfm.cli.training_session import resume_training

_ENDS = ("steps", "max_minutes", "checkpoint_minutes")
_CHANGEABLE = ("folder", "resume", *_ENDS)
_DATA = (
    "source",
    "target",
    "tsv",
    "tfds",
    "translate_folder",
    "source_language",
    "target_language",
    "split",
)
_TOKENIZER = ("tokenizer", "vocabulary_size", "joint", "preset")
_MODEL = (
    "num_layers",
    "num_decoder_layers",
    "hidden_dim",
    "intermediate_dim",
    "num_heads",
    "dropout",
)
# An option, and the attribute of `TrainingSettings` that it sets.
_SETTINGS = {
    "tokens_per_batch": "tokens_per_batch",
    "max_shapes": "max_shapes",
    "peak_rate": "peak",
    "warmup_steps": "warmup_steps",
    "decay_steps": "decay_steps",
    "label_smoothing": "label_smoothing",
    "ema_momentum": "ema_momentum",
    "seed": "seed",
}
_SCORING = ("metric", "tokenize", "lowercase")
_MAX_SEQUENCE_LENGTH = 128


def train(  # noqa: PLR0913 (each is an option)
    folder: options.FolderOption,
    source: SourceOption = None,
    target: TargetOption = None,
    tsv: TsvOption = None,
    tfds: TfdsOption = None,
    translate_folder: TranslateFolderOption = None,
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    split: SplitOption = None,
    steps: options.StepsOption = None,
    max_minutes: options.MaxMinutesOption = None,
    checkpoint_minutes: options.CheckpointMinutesOption = None,
    resume: options.ResumeOption = False,
    overwrite: options.OverwriteOption = False,
    validation_source: options.ValidationSourceOption = None,
    validation_target: options.ValidationTargetOption = None,
    validation_tsv: options.ValidationTsvOption = None,
    validation_split: options.ValidationSplitOption = None,
    metric: MetricOption = None,
    tokenize: TokenizeOption = None,
    lowercase: LowercaseOption = False,
    tokenizer: options.TokenizerOption = None,
    vocabulary_size: options.VocabularySizeOption = None,
    joint: options.JointOption = None,
    preset: options.PresetOption = None,
    num_layers: options.NumLayersOption = None,
    num_decoder_layers: options.NumDecoderLayersOption = None,
    hidden_dim: options.HiddenDimOption = None,
    intermediate_dim: options.IntermediateDimOption = None,
    num_heads: options.NumHeadsOption = None,
    dropout: options.DropoutOption = None,
    max_sequence_length: options.MaxSequenceLengthOption = None,
    tokens_per_batch: options.TokensPerBatchOption = None,
    max_shapes: options.MaxShapesOption = None,
    peak_rate: options.PeakRateOption = None,
    warmup_steps: options.WarmupStepsOption = None,
    decay_steps: options.DecayStepsOption = None,
    label_smoothing: options.LabelSmoothingOption = None,
    ema_momentum: options.EmaMomentumOption = None,
    seed: options.SeedOption = None,
) -> None:
    """Train a translator, or go on with a training that was interrupted."""
    given = {
        name: value
        for name, value in locals().items()
        if value is not None and value is not False
    }
    if joint is False:
        given["joint"] = False
    _check_ends(given)
    if resume:
        _check_unchanged(given)
        plan = TrainingPlan.load(folder)
        if steps is not None or max_minutes is not None:
            plan.ends.update(steps=steps, max_minutes=max_minutes)
        plan.ends.update(_picked(given, ("checkpoint_minutes",)))
        resume_training(plan, folder)
        return
    check_new(folder, overwrite)
    if steps is None and max_minutes is None:
        raise ValueError(
            "A training needs an end: give --steps, --max-minutes or both."
        )
    begin_training(_plan(given), folder, _tokenizer_and_model(given))


def _plan(given: dict[str, Any]) -> TrainingPlan:
    data = DataSource.from_options(**_picked(given, _DATA))
    if not data.is_given():
        data.read()  # Says what is missing.
    settings = {
        attribute: given[name]
        for name, attribute in _SETTINGS.items()
        if name in given
    }
    length = given.get("max_sequence_length", _MAX_SEQUENCE_LENGTH)
    check_positive_int("max_sequence_length", length)
    return TrainingPlan(
        data=data,
        validation=_validation(given, data),
        settings={**settings, "max_sequence_length": length},
        ends={name: given.get(name) for name in _ENDS},
        scoring=_picked(given, _SCORING),
    )


def _validation(given: dict[str, Any], data: DataSource) -> DataSource:
    names = ("source", "target", "tsv")
    files = {
        name: given[f"validation_{name}"]
        for name in names
        if f"validation_{name}" in given
    }
    if "validation_split" in given:
        if files or not (data.tfds or data.translate_folder):
            raise ValueError(
                "--validation-split is of --tfds or --translate-folder; give "
                "--validation-source and --validation-target, or "
                "--validation-tsv, with files."
            )
        return dataclasses.replace(data, split=given["validation_split"])
    return DataSource.from_options(**files, prefix="validation-")


def _tokenizer_and_model(given: dict[str, Any]) -> dict[str, Any]:
    return _picked(given, (*_TOKENIZER, *_MODEL))


def _check_ends(given: dict[str, Any]) -> None:
    for name in _ENDS:
        check = check_positive_int if name == "steps" else check_positive
        if name in given:
            check(name, given[name])


def _check_unchanged(given: dict[str, Any]) -> None:
    changed = sorted(set(given) - set(_CHANGEABLE))
    if changed:
        names = ", ".join("--" + name.replace("_", "-") for name in changed)
        raise ValueError(
            f"A training is resumed with what it began with: leave out {names}."
        )


def _picked(given: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}

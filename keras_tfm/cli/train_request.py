"""What `keras-tfm train` is asked for: its options as a plan, and back."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.cli.data_options import DataSource
from keras_tfm.cli.training_folder import TrainingPlan
from keras_tfm.cli.validation_results import result_names

ENDS = ("steps", "max_minutes", "checkpoint_minutes")
_FILES = ("source", "target", "tsv", "dates")
_DATA = (
    *_FILES,
    "tfds",
    "translate_folder",
    "source_language",
    "target_language",
    "split",
)
_TOKENIZER = ("tokenizer", "vocabulary_size", "joint", "preset")
# An option, and the argument of the model that it sets.
MODEL = {
    "num_layers": "num_layers",
    "num_decoder_layers": "num_decoder_layers",
    "hidden_dim": "hidden_dim",
    "intermediate_dim": "intermediate_dim",
    "num_heads": "num_heads",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "activation_dropout": "activation_dropout",
    "pre_norm": "normalize_first",
}
# An option, and the attribute of `TrainingSettings` that it sets.
SETTINGS = {
    "max_sequence_length": "max_sequence_length",
    "batching": "batching",
    "tokens_per_batch": "tokens_per_batch",
    "row_length": "row_length",
    "max_shapes": "max_shapes",
    "accumulation_steps": "accumulation_steps",
    "subword_dropout": "subword_dropout",
    "bidirectional_epochs": "bidirectional_epochs",
    "seed": "seed",
    "optimizer": "optimizer",
    "peak_rate": "peak",
    "warmup_steps": "warmup_steps",
    "decay_steps": "decay_steps",
    "beta_2": "beta_2",
    "weight_decay": "weight_decay",
    "clip_norm": "clip_norm",
    "label_smoothing": "label_smoothing",
    "average_last": "average_last",
    "snapshot_steps": "snapshot_steps",
    "ema_momentum": "ema_momentum",
}
_SCORING = ("metric", "tokenize", "lowercase")
# An option, and the attribute of `ValidationPlan` that it sets.
_VALIDATING = {
    "validation_steps": "every_steps",
    "patience": "patience",
    "monitor": "monitor",
}
MAX_SEQUENCE_LENGTH = 128
CHECKPOINT_MINUTES = 2.0
# What sacrebleu does where it is not told.
_BLEU_TOKENIZER = "13a"


def plan_of(given: Mapping[str, Any]) -> TrainingPlan:
    """Make a plan of the options that were given.

    Args:
        given: Dictionary of the options by name, without those left out.

    Raises:
        ValueError: If they do not go together.
    """
    data = DataSource.from_options(**_picked(given, _DATA))
    if not data.is_given():
        data.read()  # Says what is missing.
    length = given.get("max_sequence_length", MAX_SEQUENCE_LENGTH)
    check_positive_int("max_sequence_length", length)
    validation = _validation(given, data)
    _check_validation(given, validation)
    _check_settings(given)
    return TrainingPlan(
        data=data,
        validation=validation,
        settings={**_renamed(given, SETTINGS), "max_sequence_length": length},
        ends={name: given.get(name) for name in ENDS},
        scoring=_picked(given, _SCORING),
        validating=_renamed(given, _VALIDATING),
        arguments={**_picked(given, _TOKENIZER), **_renamed(given, MODEL)},
        tensorboard="tensorboard" in given,
    )


def check_ends(given: Mapping[str, Any]) -> None:
    """Raise `ValueError` if an end of a training is no number above 0."""
    for name in ENDS:
        check = check_positive_int if name == "steps" else check_positive
        if name in given:
            check(name, given[name])


def completed(
    plan: TrainingPlan, model_arguments: Mapping[str, Any]
) -> TrainingPlan:
    """Put the defaults into a plan, wherever nothing was given.

    Args:
        plan: What was asked for.
        model_arguments: The arguments that the model was made with.

    Returns:
        A plan of the same training, also under other defaults.

    Raises:
        ValueError: If a setting is wrong.
    """
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.translation import Translator

    defaults = inspect.signature(Translator.from_pairs).parameters
    arguments = {
        name: plan.arguments.get(name, defaults[name].default)
        for name in _TOKENIZER
    }
    if arguments["tokenizer"] != "bpe":
        del arguments["vocabulary_size"]  # Its size is that of the alphabet.
    arguments |= {name: model_arguments[name] for name in MODEL.values()}
    scoring, validating = {}, {}
    if plan.validation.is_given():
        metric = plan.scoring.get("metric", "bleu")
        usual = _BLEU_TOKENIZER if metric == "bleu" else None
        scoring = {
            "metric": metric,
            "tokenize": plan.scoring.get("tokenize", usual),
            "lowercase": plan.scoring.get("lowercase", False),
        }
    if plan.validating:
        validating = {
            **dict.fromkeys(_VALIDATING.values()),
            "monitor": result_names(scoring["metric"])[0],
            **plan.validating,
        }
    minutes = plan.ends["checkpoint_minutes"] or CHECKPOINT_MINUTES
    return dataclasses.replace(
        plan,
        settings=dataclasses.asdict(TrainingSettings(**plan.settings)),
        arguments=arguments,
        ends={**plan.ends, "checkpoint_minutes": minutes},
        scoring=scoring,
        validating=validating,
    )


def options_of(plan: TrainingPlan) -> dict[str, dict[str, Any]]:
    """Return the options that make a completed plan, in groups by title.

    Args:
        plan: What `completed` returned.
    """
    data = _present(plan.data, _DATA)
    if not (plan.data.tfds or plan.data.translate_folder):
        del data["split"]
    validation = {
        f"validation_{name}": value
        for name, value in _present(plan.validation, _FILES).items()
    }
    if plan.validation.tfds or plan.validation.translate_folder:
        validation["validation_split"] = plan.validation.split
    return {
        "Data": data,
        "Validation": {
            **validation,
            **plan.scoring,
            **_options(plan.validating, _VALIDATING),
        },
        "Tokenizers": _picked(plan.arguments, _TOKENIZER),
        "Model": _options(plan.arguments, MODEL),
        "Training": _options(plan.settings, SETTINGS),
        "End, and what is kept": {**plan.ends, "tensorboard": plan.tensorboard},
    }


def _validation(given: Mapping[str, Any], data: DataSource) -> DataSource:
    files = {
        name: given[f"validation_{name}"]
        for name in _FILES
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
    split = {"split": "test"} if "dates" in files else {}
    return DataSource.from_options(**files, **split, prefix="validation-")


def _check_validation(given: Mapping[str, Any], data: DataSource) -> None:
    for name in ("validation_steps", "patience"):
        if name in given:
            check_positive_int(name, given[name])
    asked = [n for n in (*_SCORING, *_VALIDATING) if n in given]
    if asked and not data.is_given():
        raise ValueError(
            f"{_option(asked[0])} is for validation data, and there are none. "
            "Give --validation-source and --validation-target, "
            "--validation-tsv, --validation-dates or --validation-split."
        )
    metric = given.get("metric", "bleu")
    only_while_training = ["--monitor"] if "monitor" in given else []
    if metric == "loss":
        only_while_training.append("--metric loss")
    if only_while_training and not (
        "validation_steps" in given or "patience" in given
    ):
        raise ValueError(
            f"{only_while_training[0]} is for validation while training: give "
            "--validation-steps, --patience or both."
        )
    if "monitor" in given:
        check_choice("monitor", given["monitor"], result_names(metric))


def _check_settings(given: Mapping[str, Any]) -> None:
    if "row_length" in given and given.get("batching") == "buckets":
        raise ValueError(
            "--row-length is for --batching packed. Received: --batching "
            "buckets."
        )
    if "snapshot_steps" in given and not given.get("average_last"):
        raise ValueError(
            "--snapshot-steps is for --average-last: give that too, above 0."
        )


def _present(data: DataSource, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(data, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _picked(given: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _renamed(
    given: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, Any]:
    return {new: given[old] for old, new in names.items() if old in given}


def _options(
    values: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, Any]:
    return {old: values[new] for old, new in names.items() if new in values}


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")

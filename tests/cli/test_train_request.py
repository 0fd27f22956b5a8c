"""Options become a plan, and a completed plan the options that make it."""

import dataclasses
import inspect
import pathlib

import pytest

from keras_tfm.cli import train as train_module
from keras_tfm.cli.recipe import write_recipe
from keras_tfm.cli.train_request import check_ends
from keras_tfm.cli.train_request import completed
from keras_tfm.cli.train_request import options_of
from keras_tfm.cli.train_request import plan_of
from keras_tfm.models.presets import PRESETS
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.settings import TrainingSettings

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "examples" / "recipes").glob("*.yaml"))
# What says nothing of a training, but where it is and what comes before.
NOT_KEPT = {"folder", "recipe", "resume", "overwrite"}

FILES = {"tsv": pathlib.Path("/a.tsv"), "steps": 5}
VALIDATED = {**FILES, "validation_tsv": pathlib.Path("/b.tsv")}
BY_LOSS = {**VALIDATED, "metric": "loss", "patience": 2}
TFDS = {
    "tfds": "a/b",
    "source_language": "no",
    "target_language": "en",
    "split": "train[:10%]",
    "validation_split": "validation",
    "max_minutes": 1.5,
}


@pytest.fixture
def begun(monkeypatch):
    """Return what `begin_training` was called with."""
    calls = []
    monkeypatch.setattr(
        train_module, "begin_training", lambda *given: calls.append(given)
    )
    return calls


def model_arguments(arguments):
    """Return what a model would be made with, without making it."""
    parameters = inspect.signature(Transformer).parameters
    made = {name: p.default for name, p in parameters.items()}
    made |= PRESETS.get(arguments.get("preset"), {})
    made |= {k: v for k, v in arguments.items() if k in made}
    if made["num_decoder_layers"] is None:
        made["num_decoder_layers"] = made["num_layers"]
    return made


def complete(given):
    plan = plan_of(given)
    return completed(plan, model_arguments(plan.arguments))


@pytest.mark.parametrize(
    "given",
    [
        FILES,
        TFDS,
        {**VALIDATED, "tokenize": "zh", "lowercase": True},
        {**BY_LOSS, "monitor": "validation_accuracy"},
        {
            "source": pathlib.Path("/a b.txt"),
            "max_minutes": 2.0,
            "target": pathlib.Path("/ü: #.txt"),
            "steps": 70_000,
            "validation_source": pathlib.Path("/null"),
            "validation_target": pathlib.Path("/no"),
            "validation_steps": 70,
            "metric": "exact",
            "preset": "transformer_tiny_multi30k",
            "num_layers": 2,
            "pre_norm": True,
            "attention_dropout": 0.1,
            "joint": False,
            "peak_rate": 1e-05,
            "optimizer": "adamw",
            "decay_steps": 9000,
            "weight_decay": 0.01,
            "clip_norm": 1.0,
            "beta_2": 0.997,
            "average_last": 5,
            "snapshot_steps": 300,
            "tensorboard": True,
            "accumulation_steps": 2,
            "row_length": 96,
            "seed": 11,
            "subword_dropout": 0.1,
            "bidirectional_epochs": 6,
            "max_sequence_length": 64,
            "checkpoint_minutes": 0.5,
            "vocabulary_size": 9712,
        },
        {**FILES, "batching": "buckets", "tokenizer": "characters"},
    ],
)
def test_the_recipe_of_a_plan_makes_the_same_plan(run, begun, tmp_path, given):
    plan = complete(given)
    path = tmp_path / "recipe.yaml"
    write_recipe(path, options_of(plan))
    code, _, errors = run("train", path, "--folder", tmp_path / "other")
    assert (code, errors) == (0, "")
    ((again, folder),) = begun
    assert folder == tmp_path / "other"
    # All that the model has was in the recipe.
    present = {k: v for k, v in plan.arguments.items() if v is not None}
    assert again.arguments == present
    assert again.settings == {
        k: v for k, v in plan.settings.items() if v is not None
    }
    assert completed(again, model_arguments(again.arguments)) == plan
    other = tmp_path / "other.yaml"
    write_recipe(other, options_of(plan))
    assert other.read_text() == path.read_text()


def test_every_option_is_in_the_recipe():
    plan = complete({**VALIDATED, "patience": 2, "max_minutes": 1.0})
    names = {name for group in options_of(plan).values() for name in group}
    names |= {n for g in options_of(complete(TFDS)).values() for n in g}
    options = set(inspect.signature(train_module.train).parameters)
    files = {"source", "target", "translate_folder", "dates"}
    files |= {"validation_source", "validation_target", "validation_dates"}
    assert names == options - NOT_KEPT - files


def test_the_defaults_stand_in_a_completed_plan():
    plan = complete(FILES)
    assert plan.settings == dataclasses.asdict(
        TrainingSettings(max_sequence_length=128)
    )
    assert plan.arguments["tokenizer"] == "bpe"
    assert plan.arguments["vocabulary_size"] == 8000
    assert plan.arguments["num_decoder_layers"] == 6
    assert plan.arguments["normalize_first"] is True
    assert plan.ends["checkpoint_minutes"] == 2
    # Nothing is validated.
    assert (plan.scoring, plan.validating) == ({}, {})


def test_the_sizes_of_a_preset_stand_in_a_completed_plan():
    plan = complete({**FILES, "preset": "transformer_tiny_multi30k"})
    assert plan.arguments["preset"] == "transformer_tiny_multi30k"
    assert plan.arguments["hidden_dim"] == 128
    assert plan.arguments["dropout"] == 0.3
    assert plan.arguments["normalize_first"] is False


def test_a_completed_validation_says_what_decides():
    plan = complete({**VALIDATED, "validation_steps": 70})
    assert plan.scoring == {
        "metric": "bleu",
        "tokenize": "13a",
        "lowercase": False,
    }
    assert plan.validating == {
        "every_steps": 70,
        "patience": None,
        "monitor": "validation_bleu",
    }
    assert complete(BY_LOSS).validating == {
        "every_steps": None,
        "patience": 2,
        "monitor": "validation_loss",
    }
    assert complete(BY_LOSS).scoring["tokenize"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {**FILES, "patience": 3},
            "--patience is for validation data, and there are none. Give "
            "--validation-source and --validation-target, --validation-tsv, "
            "--validation-dates or --validation-split.",
        ),
        ({**FILES, "validation_steps": 3}, "--validation-steps is for valid"),
        ({**FILES, "metric": "bleu"}, "--metric is for validation data"),
        (
            {**VALIDATED, "metric": "loss"},
            "--metric loss is for validation while training: give "
            "--validation-steps, --patience or both.",
        ),
        (
            {**VALIDATED, "monitor": "validation_loss"},
            "--monitor is for validation while training",
        ),
        (
            {**BY_LOSS, "monitor": "validation_bleu"},
            "`monitor` must be one of 'validation_loss', "
            "'validation_accuracy'. Received: monitor='validation_bleu'.",
        ),
        (
            {**VALIDATED, "patience": 0},
            "`patience` must be a whole number of at least 1. Received: "
            "patience=0.",
        ),
        (
            {**FILES, "row_length": 64, "batching": "buckets"},
            "--row-length is for --batching packed. Received: --batching "
            "buckets.",
        ),
        (
            {**FILES, "snapshot_steps": 64},
            "--snapshot-steps is for --average-last: give that too, above 0.",
        ),
        ({"steps": 5}, "No data. Give --source and --target"),
    ],
)
def test_what_does_not_go_together_is_told(given, message):
    with pytest.raises(ValueError, match=r"is for|must be|No data") as error:
        plan_of(given)
    assert str(error.value).startswith(message)


def test_an_end_is_a_number_above_0():
    check_ends({"steps": 1, "max_minutes": 0.5, "folder": "a"})
    with pytest.raises(ValueError, match="`steps` must be a whole number"):
        check_ends({"steps": 1.5})
    with pytest.raises(ValueError, match="`checkpoint_minutes` must be"):
        check_ends({"checkpoint_minutes": 0})


def test_validation_dates_are_those_of_the_test():
    plan = plan_of({"dates": 300, "validation_dates": 20, "steps": 1})
    assert (plan.data.dates, plan.data.split) == (300, "train")
    assert (plan.validation.dates, plan.validation.split) == (20, "test")
    assert options_of(plan)["Validation"]["validation_dates"] == 20
    assert options_of(plan)["Data"] == {"dates": 300}


def test_there_are_recipes():
    assert {path.stem for path in RECIPES} >= {
        "multi30k_en_de",
        "multi30k_en_fr",
        "tatoeba_zh_en",
    }


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_is_a_plan(run, begun, tmp_path, monkeypatch, path):
    # Where none of its data are.
    monkeypatch.chdir(tmp_path)
    assert run("train", path) == (0, "", "")
    ((plan, folder),) = begun
    assert folder == pathlib.Path("runs") / path.stem
    # Wrong settings would be told here.
    plan = completed(plan, model_arguments(plan.arguments))
    assert plan.validation.is_given()
    names = {"bleu": "validation_bleu", "exact": "validation_exact_match"}
    assert plan.validating["monitor"] == names[plan.scoring["metric"]]

"""Options become a plan, and a resumption takes the plan that is there."""

import pytest

from keras_tfm.cli import train as train_module
from keras_tfm.cli import train_request
from keras_tfm.cli.data_options import DataSource
from keras_tfm.cli.training_folder import TrainingPlan


@pytest.fixture
def begun(monkeypatch):
    """Return what `begin_training` was called with."""
    calls = []
    monkeypatch.setattr(
        train_module, "begin_training", lambda *given: calls.append(given)
    )
    return calls


@pytest.fixture
def resumed(monkeypatch):
    """Return what `resume_training` was called with."""
    calls = []
    monkeypatch.setattr(
        train_module, "resume_training", lambda *given: calls.append(given)
    )
    return calls


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a training that has begun."""
    TrainingPlan(
        data=DataSource(tsv="a.tsv"),
        validation=DataSource(),
        settings={"max_sequence_length": 9},
        ends={"steps": 7, "max_minutes": 3.0, "checkpoint_minutes": None},
        scoring={},
    ).save(tmp_path / "run")
    return tmp_path / "run"


def test_few_options_leave_the_defaults(run, begun, tmp_path):
    run("train", "--tsv", "/a.tsv", "--folder", tmp_path, "--steps", "5")
    ((plan, folder),) = begun
    assert folder == tmp_path
    assert plan == TrainingPlan(
        data=DataSource(tsv="/a.tsv"),
        validation=DataSource(prefix="validation-"),
        settings={"max_sequence_length": 128},
        ends={"steps": 5, "max_minutes": None, "checkpoint_minutes": None},
        scoring={},
    )


def test_every_option_arrives(run, begun, tmp_path):
    run(
        *("train", "--tfds", "a/b", "--source-language", "pt"),
        *("--target-language", "en", "--split", "train[:10%]"),
        *("--validation-split", "validation", "--folder", tmp_path),
        *("--steps", "5", "--max-minutes", "2", "--checkpoint-minutes", "1"),
        *("--metric", "exact", "--tokenize", "zh", "--lowercase"),
        *("--validation-steps", "70", "--patience", "3", "--tensorboard"),
        *("--monitor", "validation_loss"),
        *("--tokenizer", "characters", "--vocabulary-size", "99"),
        *("--separate", "--preset", "transformer_tiny"),
        *("--num-layers", "1", "--num-decoder-layers", "2"),
        *("--hidden-dim", "8", "--intermediate-dim", "12"),
        *("--num-heads", "2", "--dropout", "0", "--seed", "0"),
        *("--attention-dropout", "0.2", "--activation-dropout", "0.3"),
        *("--post-norm", "--max-sequence-length", "50"),
        *("--batching", "packed", "--tokens-per-batch", "64"),
        *("--row-length", "60", "--max-shapes", "2"),
        *("--accumulation-steps", "5", "--subword-dropout", "0.1"),
        *("--bidirectional-epochs", "6"),
        *("--optimizer", "muon", "--peak-rate", "0.01", "--warmup-steps", "3"),
        *("--decay-steps", "9", "--beta-2", "0.97", "--weight-decay", "0.05"),
        *("--clip-norm", "2", "--label-smoothing", "0"),
        *("--average-last", "4", "--snapshot-steps", "11"),
        *("--ema-momentum", "0"),
    )
    ((plan, _),) = begun
    assert plan.arguments == {
        "tokenizer": "characters",
        "vocabulary_size": 99,
        "joint": False,
        "preset": "transformer_tiny",
        "num_layers": 1,
        "num_decoder_layers": 2,
        "hidden_dim": 8,
        "intermediate_dim": 12,
        "num_heads": 2,
        "dropout": 0.0,
        "attention_dropout": 0.2,
        "activation_dropout": 0.3,
        "normalize_first": False,
    }
    assert plan.data == DataSource(
        tfds="a/b",
        source_language="pt",
        target_language="en",
        split="train[:10%]",
    )
    assert plan.validation.split == "validation"
    assert plan.settings == {
        "batching": "packed",
        "tokens_per_batch": 64,
        "row_length": 60,
        "max_shapes": 2,
        "accumulation_steps": 5,
        "subword_dropout": 0.1,
        "bidirectional_epochs": 6,
        "optimizer": "muon",
        "peak": 0.01,
        "warmup_steps": 3,
        "decay_steps": 9,
        "beta_2": 0.97,
        "weight_decay": 0.05,
        "clip_norm": 2.0,
        "label_smoothing": 0.0,
        "average_last": 4,
        "snapshot_steps": 11,
        "ema_momentum": 0.0,
        "seed": 0,
        "max_sequence_length": 50,
    }
    assert plan.ends == {
        "steps": 5,
        "max_minutes": 2.0,
        "checkpoint_minutes": 1.0,
    }
    assert plan.scoring == {
        "metric": "exact",
        "tokenize": "zh",
        "lowercase": True,
    }
    assert plan.validating == {
        "every_steps": 70,
        "patience": 3,
        "monitor": "validation_loss",
    }
    assert plan.tensorboard
    # None was forgotten above.
    assert set(plan.settings) == set(train_request.SETTINGS.values())
    assert set(plan.arguments) >= set(train_request.MODEL.values())


def test_a_recipe_and_options_make_one_plan(run, begun, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("tsv: /a.tsv\nsteps: 5\npeak_rate: 5e-3\nseed: 3\n")
    arguments = ("--folder", tmp_path / "run", "--seed", "7")
    assert run("train", recipe, *arguments)[0] == 0
    options = ("--tsv", "/a.tsv", "--steps", "5", "--peak-rate", "0.005")
    assert run("train", *options, *arguments)[0] == 0
    (plan, folder), other = begun
    assert (plan, folder) == other
    assert plan.settings["seed"] == 7


def test_a_resumption_needs_the_folder_alone(run, resumed, folder):
    assert run("train", "--resume", "--folder", folder)[0] == 0
    assert resumed == [(TrainingPlan.load(folder), folder)]


def test_a_new_end_takes_the_place_of_the_old_one(run, resumed, folder):
    run("train", "--resume", "--folder", folder, "--steps", "20")
    ((plan, _),) = resumed
    assert plan.ends == {
        "steps": 20,
        "max_minutes": None,
        "checkpoint_minutes": None,
    }


def test_other_checkpoints_keep_the_end(run, resumed, folder):
    run("train", "--resume", "--folder", folder, "--checkpoint-minutes", "5")
    ((plan, _),) = resumed
    assert plan.ends["checkpoint_minutes"] == 5
    assert (plan.ends["steps"], plan.ends["max_minutes"]) == (7, 3)


def test_a_resumption_changes_nothing_else(refused, resumed, folder):
    message = refused(
        *("train", "--resume", "--folder", folder, "--peak-rate", "0.1"),
        *("--separate", "--post-norm", "--overwrite"),
    )
    assert message == (
        "A training is resumed with what it began with: leave out --joint, "
        "--overwrite, --peak-rate, --pre-norm."
    )
    assert not resumed


def test_a_resumption_takes_no_recipe(refused, resumed, folder, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("steps: 5\n")
    message = refused("train", recipe, "--resume", "--folder", folder)
    assert message == (
        "A training is resumed with what it began with: leave out the recipe "
        f"{recipe}, and give its --folder."
    )
    assert not resumed


def test_a_training_that_is_there_is_not_replaced(refused, begun, folder):
    arguments = ("train", "--tsv", "a.tsv", "--folder", folder, "--steps", "5")
    message = refused(*arguments)
    assert message.startswith(f"{folder} holds a training or a model already")
    assert not begun


def test_a_training_that_is_there_is_replaced_if_asked(run, begun, folder):
    arguments = ("train", "--tsv", "a.tsv", "--folder", folder, "--steps", "5")
    assert run(*arguments, "--overwrite")[0] == 0
    assert len(begun) == 1


def test_there_must_be_something_to_resume(refused, tmp_path):
    message = refused("train", "--resume", "--folder", tmp_path)
    assert message.startswith(f"There is no training to resume in {tmp_path}")

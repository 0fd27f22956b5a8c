"""What a training began with is kept, and nothing is destroyed silently."""

import pytest

from keras_tfm.cli import training_folder
from keras_tfm.cli.data_options import DataSource
from keras_tfm.cli.training_folder import TrainingPlan
from keras_tfm.cli.training_folder import check_new
from keras_tfm.cli.training_folder import fingerprint
from keras_tfm.cli.training_folder import remove_training
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.tasks import training_run

PLAN = TrainingPlan(
    data=DataSource(tsv="a.tsv"),
    validation=DataSource(),
    settings={"peak": 0.01},
    ends={"steps": 7, "max_minutes": None, "checkpoint_minutes": None},
    scoring={"tokenize": "zh"},
    validating={"every_steps": 3},
    arguments={"joint": False},
    tensorboard=True,
    fingerprint="abc",
)


def test_a_plan_survives_its_file(tmp_path):
    PLAN.save(tmp_path / "new" / "folder")
    assert TrainingPlan.load(tmp_path / "new" / "folder") == PLAN


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"data": 1}'])
def test_a_folder_without_a_training_says_so(tmp_path, content):
    if content is not None:
        (tmp_path / "training.json").write_text(content)
    with pytest.raises(ValueError, match="no training to resume") as error:
        TrainingPlan.load(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_the_fingerprint_knows_every_text_and_its_place():
    texts = [
        (["a", "b"], ["c", "d"]),
        (["b", "a"], ["c", "d"]),
        (["a", "b"], ["c", "e"]),
        (["ac", "b"], ["a", "d"]),
        (["a", "bc"], ["c", "d"]),
    ]
    prints = {fingerprint(SentencePairs(*pair)) for pair in texts}
    assert len(prints) == len(texts)
    assert fingerprint(SentencePairs(["é"], ["x"], "other")) == fingerprint(
        SentencePairs(["é"], ["x"])
    )


def test_a_new_folder_and_one_with_other_things_are_fine(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    check_new(tmp_path, overwrite=False)
    check_new(tmp_path / "new", overwrite=False)


@pytest.mark.parametrize(
    "name",
    [
        "training.json",
        "translator.json",
        "model.keras",
        "recipe.yaml",
        "training_log.csv",
        "snapshots/step_00000100.npz",
        "events.out.tfevents.123.host",
    ],
)
def test_a_training_is_not_overwritten_unasked(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(ValueError, match=f"already \\({name}\\)") as error:
        check_new(tmp_path, overwrite=False)
    assert "--resume" in str(error.value)
    check_new(tmp_path, overwrite=True)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file; give a folder"):
        check_new(tmp_path / "file", overwrite=True)


def test_only_the_training_is_removed(tmp_path):
    for folder in ("source_tokenizer", "snapshots", "best"):
        (tmp_path / folder).mkdir()
    for name in (
        "checkpoint.npz",
        "training_log.csv",
        "curves.png",
        "recipe.yaml",
        "events.out.tfevents.123.host",
        "source_tokenizer/characters.json",
        "snapshots/step_00000100.npz",
        "snapshots/.step_00000200.npz.77",
        "best/step_00000100.npz",
    ):
        (tmp_path / name).write_text("")
    mine = {"notes.txt", "events.txt", "best/notes.txt"}
    for name in mine:
        (tmp_path / name).write_text("mine")
    remove_training(tmp_path)
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")}
    assert left == mine | {"best"}


def test_the_names_are_those_that_a_training_writes():
    assert training_folder.LOG_FILE == training_run.LOG_FILE
    assert training_folder._SNAPSHOT_FOLDERS == (
        training_run.SNAPSHOT_FOLDER,
        training_run.BEST_FOLDER,
    )

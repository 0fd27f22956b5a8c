"""A training's log becomes a picture, if there is something to draw it."""

import sys

import pytest

from keras_tfm.cli.curves import write_curves
from keras_tfm.training.training_log_file import append_row


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a training with a log."""
    for step in (100, 200):
        row = {"step": step, "loss": 9.0 - step / 100, "learning_rate": 0.1}
        append_row(tmp_path / "training_log.csv", row)
    return tmp_path


def test_the_log_is_drawn(folder, capsys):
    write_curves(folder)
    assert (folder / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert capsys.readouterr() == (
        f"The learning curves are in {folder}/training_log.csv, as a picture "
        f"in {folder}/curves.png.\n",
        "",
    )


def test_without_matplotlib_a_note_says_how_to_get_it(
    folder, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    write_curves(folder)
    output, errors = capsys.readouterr()
    assert output == (
        f"The learning curves are in {folder}/training_log.csv.\n"
    )
    assert errors.startswith("keras-tfm: there is no picture of the learning")
    assert "pip install 'keras_tfm[viz]'" in errors
    assert errors.count("\n") == 1
    assert not (folder / "curves.png").exists()


def test_a_training_of_a_few_steps_has_no_curves(tmp_path, capsys):
    write_curves(tmp_path)
    assert capsys.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())

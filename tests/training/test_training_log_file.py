"""The file of a training log, also where a kill has left it in pieces."""

import pathlib

import pytest

from keras_tfm.training.training_log_file import FIRST_COLUMNS
from keras_tfm.training.training_log_file import append_row
from keras_tfm.training.training_log_file import drop_rows_after
from keras_tfm.training.training_log_file import read_training_log
from keras_tfm.training.training_log_file import write_through


@pytest.fixture
def path(tmp_path):
    return tmp_path / "training_log.csv"


def write_rows(path, *steps):
    for step in steps:
        append_row(path, {"step": step, "loss": step / 10})


def test_the_file_is_plain_csv(path):
    append_row(path, {"step": 12_345_678, "loss": 0.1, "minutes": 1e-7})
    append_row(path, {"step": 12_345_679, "learning_rate": None, "loss": 2})
    assert path.read_text() == (
        "step,minutes,tokens_per_second,learning_rate,loss\n"
        "12345678,1e-07,,,0.1\n"
        "12345679,,,,2\n"
    )


def test_what_is_read_is_what_was_written(path):
    append_row(path, {"step": 3, "loss": 1.25, "learning_rate": 1e-9})
    append_row(path, {"step": 5, "loss": float("nan")})
    log = read_training_log(path)
    assert list(log) == [*FIRST_COLUMNS, "loss"]
    assert log["step"] == [3.0, 5.0]
    assert log["learning_rate"] == [1e-9, None]
    assert log["loss"][0] == 1.25
    assert log["loss"][1] != log["loss"][1]  # NaN


def test_a_new_name_becomes_a_column_with_empty_cells_above(path):
    write_rows(path, 2, 3)
    append_row(path, {"step": 3, "validation_bleu": 30.5, "a, b": 1.0})
    write_rows(path, 5)
    log = read_training_log(path)
    assert list(log) == [*FIRST_COLUMNS, "loss", "validation_bleu", "a, b"]
    assert log["loss"] == [0.2, 0.3, None, 0.5]
    assert log["validation_bleu"] == [None, None, 30.5, None]
    assert log["a, b"] == [None, None, 1.0, None]


def test_rows_after_the_step_are_dropped_and_the_others_kept(path):
    write_rows(path, 2, 3, 5, 7)
    drop_rows_after(path, 5)
    write_rows(path, 11)
    assert read_training_log(path)["step"] == [2.0, 3.0, 5.0, 11.0]


def test_at_step_0_the_whole_file_is_dropped(path):
    write_rows(path, 2, 3)
    drop_rows_after(path, 0)
    assert not path.exists()
    drop_rows_after(path, 0)  # There need not be one.


@pytest.mark.parametrize("torn", ["7", "7,,,,0.", "1", "7,,,,0.7,9,9"])
def test_a_line_without_an_end_does_not_count(path, torn):
    write_rows(path, 2, 3)
    with path.open("a") as file:
        file.write(torn)
    assert read_training_log(path)["loss"] == [0.2, 0.3]
    drop_rows_after(path, 9)
    write_rows(path, 11)
    assert read_training_log(path)["loss"] == [0.2, 0.3, 1.1]


def test_an_empty_file_is_a_log_without_rows(path):
    path.touch()
    assert read_training_log(path) == {}
    drop_rows_after(path, 5)
    write_rows(path, 7)
    assert read_training_log(path)["step"] == [7.0]


@pytest.mark.parametrize("content", ["a letter\n", "epoch,step\n1,2\n", "\n"])
def test_another_file_is_left_alone(path, content):
    path.write_text(content)
    for act in (read_training_log, lambda path: drop_rows_after(path, 0)):
        with pytest.raises(ValueError, match='begins with "step"'):
            act(path)
    with pytest.raises(ValueError, match="its first line is"):
        append_row(path, {"step": 1})
    assert path.read_text() == content


def test_bytes_that_are_no_text_are_left_alone(path):
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not UTF-8 text"):
        drop_rows_after(path, 0)
    assert path.read_bytes() == b"\xff\xfe\x00"


@pytest.mark.parametrize("line", ["5,,,,high", "5,1", ",,,,1", "5,,,,1,1"])
def test_a_broken_line_is_named(path, line):
    write_rows(path, 2, 3)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match="line 4 is") as caught:
        read_training_log(path)
    assert line in str(caught.value)


def test_a_missing_log_is_named(path):
    with pytest.raises(FileNotFoundError, match=r"training_log\.csv"):
        read_training_log(path)


def test_a_failure_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    write_rows(path, 2, 3)
    before = path.read_bytes()

    def fail(self, target):
        raise OSError("the disk is gone")

    monkeypatch.setattr(pathlib.Path, "replace", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        drop_rows_after(path, 2)
    with pytest.raises(OSError, match="the disk is gone"):
        append_row(path, {"step": 5, "new": 1.0})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_writing_through_changes_nothing(path):
    write_through(path)
    assert not path.exists()
    write_rows(path, 2)
    before = path.read_bytes()
    write_through(path)
    assert path.read_bytes() == before

"""Options name one source of pairs, and it is read."""

import dataclasses
import pathlib

import pytest

from keras_tfm.cli.data_options import DataSource


def test_two_files_are_read(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("eins\n")
    (tmp_path / "b.txt").write_text("one\n")
    monkeypatch.chdir(tmp_path)
    data = DataSource.from_options(
        source=pathlib.Path("a.txt"), target=pathlib.Path("b.txt")
    )
    monkeypatch.chdir("/")
    assert list(data.read()) == [("eins", "one")]


def test_one_file_is_read(tmp_path):
    (tmp_path / "a.tsv").write_text("eins\tone\n")
    data = DataSource.from_options(tsv=tmp_path / "a.tsv")
    assert list(data.read()) == [("eins", "one")]


def test_a_folder_is_read(tmp_path):
    (tmp_path / "de.dev.txt").write_text("eins\n")
    (tmp_path / "en.dev.txt").write_text("one\n")
    data = DataSource.from_options(
        translate_folder=tmp_path,
        source_language="en",
        target_language="de",
        split="dev",
    )
    assert list(data.read()) == [("one", "eins")]


def test_dates_are_generated_and_a_test_has_others():
    train = DataSource.from_options(dates=211).read()
    test = DataSource.from_options(dates=43, split="test").read()
    assert (len(train), len(test)) == (211, 43)
    assert not {*train.targets} & {*test.targets}


def test_a_data_set_that_is_not_there_is_named():
    data = DataSource.from_options(tfds="no_such_data_set_at_all")
    with pytest.raises(ValueError, match="'no_such_data_set_at_all' cannot"):
        data.read()


def test_what_is_saved_reads_the_same(tmp_path):
    data = DataSource.from_options(tsv=tmp_path / "a.tsv", split="test")
    assert DataSource(**dataclasses.asdict(data)) == data


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "a"}, "--source needs --target"),
        ({"target": "a"}, "--target needs --source"),
        (
            {"tsv": "a", "translate_folder": "b"},
            "Give one kind of data. Received: --tsv and --translate-folder.",
        ),
        (
            {"tsv": "a", "tfds": "b", "prefix": "validation-"},
            "Received: --validation-tsv and --validation-tfds.",
        ),
        (
            {"translate_folder": "a", "source_language": "de"},
            "needs --source-language and --target-language",
        ),
    ],
)
def test_options_that_do_not_fit_together_are_named(options, message):
    with pytest.raises(ValueError, match=r"Give|needs") as error:
        DataSource.from_options(**options)
    assert message in str(error.value)


def test_no_data_are_no_data():
    assert not DataSource().is_given()
    with pytest.raises(ValueError, match=r"No data\. Give --source and"):
        DataSource().read()

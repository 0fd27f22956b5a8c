"""A file of options is as good as options, and says which line is wrong."""

import io
import pathlib
from typing import Annotated

import pytest
import typer
import yaml

from keras_tfm.cli.recipe import Entry
from keras_tfm.cli.recipe import RecipeArgument
from keras_tfm.cli.recipe import read_recipe
from keras_tfm.cli.recipe import write_recipe
from keras_tfm.cli.train_options import TokenizerKind


@pytest.fixture
def recipe(tmp_path):
    """Return a function that writes a recipe and returns its path."""

    def recipe(content):
        path = tmp_path / "recipe.yaml"
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        return path

    return recipe


@pytest.fixture
def cook():
    """Return a function that runs a small command and returns its options."""
    calls = []
    app = typer.Typer()

    @app.command()
    def command(
        folder: Annotated[pathlib.Path, typer.Option("--folder")],
        recipe: RecipeArgument = None,
        steps: Annotated[int | None, typer.Option("--steps")] = None,
        peak_rate: Annotated[float | None, typer.Option("--peak-rate")] = None,
        language: Annotated[str | None, typer.Option("--language")] = None,
        tokenizer: Annotated[
            TokenizerKind | None, typer.Option("--tokenizer")
        ] = None,
        joint: Annotated[
            bool | None, typer.Option("--joint/--separate")
        ] = None,
        lowercase: Annotated[bool, typer.Option("--lowercase")] = False,
    ) -> None:
        given = dict(locals())
        given.pop("calls", None)
        calls.append(given)

    def cook(*arguments):
        app(
            args=[str(argument) for argument in arguments],
            standalone_mode=False,
        )
        return calls.pop()

    return cook


def test_a_recipe_is_converted_as_options_are(cook, recipe):
    path = recipe(
        "folder: runs/one\n"
        "steps: 7  # few\n"
        "peak_rate: 5e-3\n"
        "language: no\n"
        "tokenizer: characters\n"
        "joint: false\n"
        "lowercase: true\n"
    )
    assert cook(path) == {
        "folder": pathlib.Path("runs/one"),
        "recipe": path,
        "steps": 7,
        "peak_rate": 0.005,
        "language": "no",
        "tokenizer": TokenizerKind.characters,
        "joint": False,
        "lowercase": True,
    }


def test_the_command_line_wins(cook, recipe):
    path = recipe("folder: a\nsteps: 7\njoint: true\nlanguage: de\n")
    options = cook("--steps", "3", path, "--separate", "--folder", "b")
    assert options["steps"] == 3
    assert options["joint"] is False
    assert options["folder"] == pathlib.Path("b")
    assert options["language"] == "de"


def test_null_is_not_given(cook, recipe):
    path = recipe("folder: a\nsteps: null\njoint: ~\nlanguage:\n")
    options = cook(path)
    assert [options[name] for name in ("steps", "joint", "language")] == [
        None,
        None,
        None,
    ]
    assert cook(recipe('folder: a\nlanguage: "null"\n'))["language"] == "null"


def test_without_a_recipe_nothing_changes(cook):
    options = cook("--folder", "a")
    assert options["recipe"] is None
    assert options["steps"] is None


def test_a_required_option_may_be_missing_still(refused, recipe):
    message = refused("train", recipe("tsv: a.tsv\nsteps: 7\n"))
    assert message == "Missing option '--folder'."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "folder: a\nstesp: 7\n",
            "line 2: there is no option `stesp`. Did you mean `steps`?",
        ),
        (
            "peak-rate: 1\n",
            "line 1: there is no option `peak-rate`. Did you mean `peak_rate`?",
        ),
        (
            "recipe: other.yaml\n",
            "line 1: there is no option `recipe`. See keras-tfm train --help.",
        ),
        (
            "\n\nseparate: true\n",
            "line 3: write `joint: false` for `separate`.",
        ),
        ("lowercase: 7\n", "line 1: `lowercase: 7` is not right: it is true"),
        ("steps: 7.5\n", "line 1: `steps: 7.5` is not right: "),
        ("# none\npeak_rate: high\n", "line 2: `peak_rate: high` is not right"),
        ("tokenizer: bpx\n", "line 1: `tokenizer: bpx` is not right: "),
        (
            "steps: 7\nsteps: 8\n",
            "line 2: `steps` is given twice, also in line 1; leave one out.",
        ),
        (
            "steps: [7]\n",
            "line 1: `steps` must be one value. Received: a list.",
        ),
        (
            "a: 1\nsteps:\n  most: 7\n",
            "line 2: `steps` must be one value. Received: options of its own.",
        ),
        ("? [a]\n: 1\n", "line 1: an option was expected. Received: a list."),
        (
            "folder: a\n  steps: 7: 8\n",
            "line 2: this is not YAML: mapping values are not allowed here. "
            "Write `option: value` on each line.",
        ),
        (
            "folder: a\n---\nfolder: b\n",
            "line 2: this is not YAML: but found another document.",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(cook, recipe, content, message):
    path = recipe(content)
    with pytest.raises(ValueError, match="line") as error:
        cook(path, "--folder", "a")
    assert str(error.value).startswith(f"{path}, {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- steps\n", "Received: a list."),
        ("steps\n", "Received: the text 'steps'."),
        ("# nothing\n", "Received: nothing."),
        (b"folder: \xff\n", "byte 9: this is not valid UTF-8"),
        ("folder: \x00\n", "this is not YAML: unacceptable character"),
    ],
)
def test_what_is_no_recipe_is_named(recipe, content, message):
    path = recipe(content)
    with pytest.raises(ValueError, match=r"recipe\.yaml") as error:
        read_recipe(path)
    assert message in str(error.value)


def test_a_recipe_that_is_not_there_is_named(cook, tmp_path):
    path = tmp_path / "other.yaml"
    with pytest.raises(ValueError, match="there is no such recipe") as error:
        cook(path, "--folder", "a")
    assert str(path) in str(error.value)
    with pytest.raises(ValueError, match="is a folder; give the recipe"):
        cook(tmp_path, "--folder", "a")


def test_a_recipe_is_told_in_one_line(refused, recipe):
    path = recipe("tsv: a.tsv\nsteps: many\n")
    message = refused("train", path, "--folder", "a")
    assert message.startswith(f"{path}, line 2: `steps: many` is not right: ")


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "new.yaml"
    values = {
        "text": "no",
        "number": "007",
        "empty": "null",
        "path": "/data/übung #1: a" + " long" * 40,
        "kind": TokenizerKind.bpe,
        "small": 1e-05,
        "none": None,
        "flag": True,
        "count": 4096,
    }
    first, second = (
        dict(list(values.items())[:3]),
        dict(list(values.items())[3:]),
    )
    write_recipe(
        path, {"One": first, "Empty": {}, "Two": second}, "A heading\nof two"
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["# A heading", "# of two", "", "# One"]
    assert "# Empty" not in lines
    entries = read_recipe(path)
    assert entries["text"] == Entry("no", 5)
    assert {name: entry.text for name, entry in entries.items()} == {
        **values,
        "kind": "bpe",
        "small": "1.0e-05",
        "none": None,
        "flag": "true",
        "count": "4096",
    }
    # Any other program reads the same.
    assert yaml.safe_load(io.StringIO("\n".join(lines))) == {
        **values,
        "kind": "bpe",
    }

"""Each wrong input gives one line that names it, and no stack trace."""

import os
import subprocess
import sys

import pytest

from keras_tfm.models.presets import PRESETS

SMALL = (
    "--steps",
    "1",
    "--tokenizer",
    "characters",
    "--num-layers",
    "1",
    "--hidden-dim",
    "8",
    "--num-heads",
    "2",
)


@pytest.fixture
def files(tmp_path):
    """Return a function that writes text files and returns their paths."""

    def files(*contents):
        paths = []
        for content in contents:
            path = tmp_path / f"text{len(paths)}.txt"
            path.write_bytes(content)
            paths.append(path)
        return paths

    return files


@pytest.fixture
def refused_files(refused, files, tmp_path):
    """Return a function that trains on two wrong files."""

    def refused_files(*contents):
        source, target = files(*contents)
        folder = tmp_path / "run"
        message = refused(
            "train",
            "--source",
            source,
            "--target",
            target,
            "--folder",
            folder,
            *SMALL,
        )
        assert not folder.exists()
        return message.replace(str(tmp_path) + os.sep, "")

    return refused_files


def test_unequal_numbers_of_lines(refused_files):
    message = refused_files(b"a\nb\nc\n", b"x\ny\n")
    assert message == (
        "text0.txt has 3 lines but text1.txt has 2; line n of one must "
        "translate line n of the other."
    )


def test_an_empty_file(refused_files):
    message = refused_files(b"a\n", b"")
    assert message == "text1.txt: the file is empty; give one text a line."


def test_an_empty_line(refused_files):
    message = refused_files(b"a\n\nc\n", b"x\ny\nz\n")
    assert message.startswith("text0.txt, line 2: the line is empty;")


def test_broken_utf8(refused_files):
    message = refused_files(b"a\nb\n", b"x\ny\xe9\n")
    assert message.startswith(
        "text1.txt, line 2, byte 2: 0xE9 is not valid UTF-8;"
    )


def test_a_file_that_is_not_there(refused, tmp_path):
    path = tmp_path / "nothing.tsv"
    message = refused(
        "train", "--tsv", path, "--folder", tmp_path / "run", *SMALL
    )
    assert message == f"{path}: there is no such file; check the path."


def test_a_line_without_a_tab(refused, files, tmp_path):
    (path,) = files(b"a\tb\nc d\n")
    message = refused(
        "train", "--tsv", path, "--folder", tmp_path / "run", *SMALL
    )
    assert message.startswith(f"{path}, line 2: expected two columns")


def test_a_missing_split(refused, tmp_path):
    for name in ("de.train.txt", "en.train.txt"):
        (tmp_path / name).write_text("a\n")
    message = refused(
        "train",
        "--translate-folder",
        tmp_path,
        "--source-language",
        "de",
        "--target-language",
        "en",
        "--split",
        "test",
        "--folder",
        tmp_path / "run",
        *SMALL,
    )
    assert message.startswith(f"{tmp_path}: there is no file de.test.txt;")
    assert "'train'" in message


@pytest.fixture
def refused_options(refused, files, tmp_path):
    """Return a function that trains on good files with wrong options."""

    def refused_options(*options):
        (path,) = files(b"abcdef\tghij\n" * 3)
        folder = tmp_path / "run"
        message = refused("train", "--tsv", path, "--folder", folder, *options)
        assert not folder.exists()
        return message

    return refused_options


def test_an_unknown_preset(refused_options):
    message = refused_options("--steps", "1", "--preset", "transformer_bas")
    assert message.startswith("`preset` must be one of 'transformer_base'")
    assert message.endswith("Did you mean 'transformer_base'?")
    assert all(name in message for name in PRESETS)


def test_heads_that_do_not_divide_the_width(refused_options):
    message = refused_options(
        "--steps", "1", "--hidden-dim", "10", "--num-heads", "4"
    )
    assert message == (
        "`hidden_dim` must be divisible by `num_heads`. Received: "
        "hidden_dim=10, num_heads=4. Try hidden_dim=8."
    )


def test_heads_that_do_not_divide_the_width_of_a_preset(refused_options):
    message = refused_options(
        "--steps", "1", "--preset", "transformer_tiny", "--num-heads", "5"
    )
    assert "hidden_dim=128, num_heads=5" in message


def test_pairs_that_are_all_too_long(refused_options):
    message = refused_options(*SMALL, "--max-sequence-length", "5")
    assert message.startswith(
        "All 3 pairs are too long: the shortest takes 7 tokens with its end "
        "mark, and 5 fit."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "A training needs an end: give --steps, --max-minutes or both."),
        (
            ("--steps", "0"),
            "`steps` must be a whole number of at least 1. Received: steps=0.",
        ),
        (
            ("--max-minutes", "-1"),
            "`max_minutes` must be a number above 0. Received: "
            "max_minutes=-1.0.",
        ),
        (
            ("--steps", "1", "--label-smoothing", "1"),
            "`label_smoothing` must be a number in [0, 1). Received: "
            "label_smoothing=1.0.",
        ),
        (
            ("--steps", "1", "--validation-source", "a.txt"),
            "--validation-source needs --validation-target: line n of one "
            "translates line n of the other.",
        ),
        (
            ("--steps", "1", "--validation-split", "test"),
            "--validation-split is of --tfds or --translate-folder; give "
            "--validation-source and --validation-target, or "
            "--validation-tsv, with files.",
        ),
    ],
)
def test_wrong_options_of_a_training(refused_options, options, message):
    assert refused_options(*options) == message


@pytest.mark.parametrize("command", ["translate", "evaluate", "export"])
def test_a_model_folder_that_is_not_one(refused, files, tmp_path, command):
    (path,) = files(b"a\tb\n")
    further = {
        "translate": ("a",),
        "evaluate": ("--tsv", path),
        "export": ("--output", tmp_path / "saved_model"),
    }
    message = refused(command, "--folder", tmp_path, *further[command])
    assert message.startswith(f"{tmp_path} is not the folder of a translator")


def test_a_damaged_model_is_named(refused, model_folder, tmp_path):
    for path in model_folder.rglob("*"):
        if path.is_file():
            copy = tmp_path / "model" / path.relative_to(model_folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (tmp_path / "model" / "model.keras").write_bytes(b"not a model")
    message = refused("translate", "--folder", tmp_path / "model", "a")
    assert "model.keras" in message


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (("translate",), "Missing option '--folder'."),
        (("translate", "--floder", "x"), "No such option: --floder"),
        (("trian",), "No such command 'trian'."),
        (("train", "--folder", "x", "--steps", "many"), "Invalid value for"),
    ],
)
def test_a_mistyped_command(refused, arguments, start):
    assert refused(*arguments).startswith(start)


def test_a_whole_process_says_no_more_than_the_line(files, tmp_path):
    (path,) = files(b"a\tb\n\n")
    result = subprocess.run(
        [
            *(sys.executable, "-m", "keras_tfm", "train", "--tsv", str(path)),
            *("--folder", str(tmp_path / "run"), *SMALL),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"keras-tfm: error: {path}, line 2: the line is empty; give one text "
        "a line, or remove the pair.\n"
    )

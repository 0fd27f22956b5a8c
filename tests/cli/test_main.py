"""The program answers quickly, and ends as it should."""

import os
import subprocess
import sys
import time

import pytest

import keras_tfm
from keras_tfm.cli import main as main_module
from keras_tfm.cli.main import main

COMMANDS = (
    "quickstart",
    "train",
    "translate",
    "evaluate",
    "score",
    "export",
)
# Seconds; far less than TensorFlow takes, on a busy machine too. The best of a
# few tries counts: the first that is quick enough is the last.
QUICK = 1.5
TRIES = 3


def python(*arguments, **kwargs):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        **kwargs,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help_comes_at_once(arguments):
    tries = []
    while len(tries) < TRIES and min(tries, default=QUICK) >= QUICK:
        began = time.perf_counter()
        result = python("-m", "keras_tfm", *arguments)
        tries.append(time.perf_counter() - began)
        assert result.returncode == 0
        assert "Usage: keras-tfm" in result.stdout
    assert min(tries) < QUICK, f"took {tries} seconds"


def test_no_command_brings_in_keras_before_it_needs_it(tmp_path):
    # The name of the program decides, as it does for the installed script.
    program = tmp_path / "keras-tfm"
    program.write_text(
        "import sys\n"
        "from keras_tfm.cli.main import main\n"
        "print([main([name, '--help']) for name in sys.argv[1:]][-1])\n"
        "heavy = {'keras', 'tensorflow', 'babel', 'numpy', 'sacrebleu'}\n"
        "print(heavy & set(sys.modules))\n"
    )
    result = python(str(program), *COMMANDS)
    assert result.stderr == ""
    assert result.stdout.endswith("\n0\nset()\n")


def test_the_packages_are_there_for_the_command_line_when_asked_for(tmp_path):
    program = tmp_path / "keras-tfm"
    program.write_text(
        "import keras_tfm\n"
        "print(keras_tfm.layers.EncoderBlock.__name__)\n"
        "print(keras_tfm.models.Transformer.__name__)\n"
    )
    result = python(str(program))
    assert result.stdout == "EncoderBlock\nTransformer\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(run, command):
    code, output, errors = run(command, "--help")
    assert (code, errors) == (0, "")
    assert f"Usage: keras-tfm {command}" in output


def test_the_version_is_the_package_s(run):
    expected = f"keras-tfm {keras_tfm.__version__}\n"
    assert run("--version") == (0, expected, "")


def test_without_a_command_there_is_help(run):
    code, output, errors = run()
    assert code == 2
    assert all(command in output + errors for command in COMMANDS)


def raising(error):
    def app(**kwargs):
        raise error

    return app


def test_an_expected_error_is_one_line(run, monkeypatch):
    error = FileNotFoundError(2, "No such file", "a.txt")
    monkeypatch.setattr(main_module, "app", raising(error))
    expected = "keras-tfm: error: a.txt: No such file\n"
    assert run() == (2, "", expected)


def test_debugging_shows_the_trace_of_an_expected_error(run, monkeypatch):
    monkeypatch.setenv("KERAS_TFM_DEBUG", "1")
    monkeypatch.setattr(main_module, "app", raising(OSError("disk full")))
    code, _, errors = run()
    assert code == 2
    assert errors.startswith("Traceback")
    assert errors.endswith("keras-tfm: error: disk full\n")


def test_the_debug_option_shows_the_trace(run, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_TFM_DEBUG", "")
    code, _, errors = run("--debug", "translate", "--folder", tmp_path, "a")
    assert code == 2
    assert "Traceback" in errors
    assert f"{tmp_path} is not the folder of a translator" in errors


def test_an_unexpected_error_shows_its_trace(run, monkeypatch):
    monkeypatch.setattr(main_module, "app", raising(KeyError("a bug")))
    code, _, errors = run()
    assert code == 1
    assert "Traceback" in errors
    assert "this is an error in the program" in errors


def test_an_interruption_is_no_error(run, monkeypatch):
    monkeypatch.setattr(main_module, "app", raising(KeyboardInterrupt()))
    assert run() == (130, "", "")


def test_a_reader_that_leaves_is_no_error(tmp_path):
    program = tmp_path / "keras-tfm"
    program.write_text(
        "from keras_tfm.cli import main as module\n"
        "def app(**_):\n"
        "    raise BrokenPipeError\n"
        "module.app = app\n"
        "raise SystemExit(module.main([]))\n"
    )
    result = python(str(program))
    assert (result.returncode, result.stdout) == (0, "")
    assert "Traceback" not in result.stderr


def test_a_result_is_the_exit_code(monkeypatch):
    monkeypatch.setattr(main_module, "app", lambda **_: 143)
    assert main([]) == 143

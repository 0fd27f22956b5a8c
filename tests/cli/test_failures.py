"""Which errors are explained in one line, and how."""

import json

import pytest
import typer

from keras_tfm.checks import check_positive_int
from keras_tfm.cli.failures import is_expected
from keras_tfm.cli.failures import one_line
from keras_tfm.data.text_files import read_lines


def caught(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return error
    return pytest.fail("there was no error")


def test_an_error_that_our_code_raised_is_expected(tmp_path):
    assert is_expected(caught(check_positive_int, "steps", 0))
    assert is_expected(caught(read_lines, tmp_path / "nothing"))


def test_an_error_from_inside_another_package_is_not():
    assert not is_expected(caught(json.loads, "{"))


@pytest.mark.parametrize(
    "error", [OSError(), PermissionError(), FileNotFoundError(), MemoryError()]
)
def test_an_error_of_the_machine_is_expected_anywhere(error):
    assert is_expected(error)


@pytest.mark.parametrize("error", [KeyError(), IndexError(), ValueError()])
def test_an_error_without_a_trace_of_ours_is_a_bug(error):
    assert not is_expected(error)


def test_a_wrong_option_is_expected():
    error = typer.BadParameter("no number")
    assert is_expected(error)
    assert "no number" in one_line(error)


def test_an_error_without_a_message_has_its_name():
    assert one_line(MemoryError()) == "MemoryError"

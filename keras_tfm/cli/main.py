"""`keras-tfm`: the commands, and how the program ends."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from keras_tfm.cli.console import note
from keras_tfm.cli.evaluate import evaluate
from keras_tfm.cli.export import export
from keras_tfm.cli.failures import is_expected
from keras_tfm.cli.failures import one_line
from keras_tfm.cli.kept_memory import keep_memory
from keras_tfm.cli.quickstart import quickstart
from keras_tfm.cli.score import score
from keras_tfm.cli.train import train
from keras_tfm.cli.translate import translate

DEBUG_VARIABLE = "KERAS_TFM_DEBUG"
EXIT_WRONG_INPUT = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="keras-tfm",
    help="Train, score, use and export Transformers that translate.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (quickstart, train, translate, evaluate, score, export):
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        package = importlib.import_module("keras_tfm")
        print(f"keras-tfm {package.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and leave.",
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show the stack trace of every error "
            f"(as {DEBUG_VARIABLE}=1 does).",
        ),
    ] = False,
) -> None:
    """Train, score, use and export Transformers that translate."""
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: List of strings. Defaults to those of the process.

    Returns:
        The exit code: 0, 2 for a wrong input, 130 after Ctrl-C, or 1 for an
        error in the program.

    Example:
        >>> main(["--version"])
        keras-tfm 0.1.0
        0
    """
    if arguments is None:
        keep_memory(sys.argv[1:])
    try:
        for stream in (sys.stdout, sys.stderr):
            # Better a question mark than a crash, on a terminal without UTF-8.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        status = app(
            args=None if arguments is None else list(arguments),
            prog_name="keras-tfm",
            standalone_mode=False,
        )
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except Exception as error:
        return _report(error)
    return status or 0


def _report(error: Exception) -> int:
    expected = is_expected(error)
    if not expected or os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    if not expected:
        note(
            "this is an error in the program, not in what you gave it. "
            "Please report it with the lines above."
        )
        return 1
    note(f"error: {one_line(error)}")
    return EXIT_WRONG_INPUT

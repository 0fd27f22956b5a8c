"""`keras-tfm export`: a SavedModel that takes strings and returns strings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_tfm.cli.console import say
from keras_tfm.cli.tensorflow_setup import start_tensorflow

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator


def export(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            help="Folder of a trained translator.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            help="Folder to write the SavedModel to.",
            show_default=False,
        ),
    ],
    jit: Annotated[
        bool,
        typer.Option(
            "--jit/--no-jit",
            help="Whether XLA compiles the model where it is loaded.",
        ),
    ] = True,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace a SavedModel that is there."),
    ] = False,
) -> None:
    """Write a SavedModel that takes strings and returns strings."""
    check_replaceable(output, overwrite)
    start_tensorflow()
    from keras_tfm.tasks.translation import Translator

    translator = Translator.load(folder)
    write_saved_model(translator, output, jit)
    say(f"Wrote the SavedModel {output}.")
    say(
        "serving_default: text, strings (batch,) -> "
        "text, strings (batch,); score, float32 (batch,)"
    )
    say()
    say("Use it, in any program that has TensorFlow:")
    say()
    for line in usage(translator, output):
        say(f"    {line}")


def usage(translator: Translator, output: Path) -> list[str]:
    """Return the lines of Python that load and call a SavedModel."""
    return [
        f"import tensorflow as tf{_needed_import(translator)}",
        f'model = tf.saved_model.load("{output}")',
        'model.signatures["serving_default"](text=tf.constant(["..."]))',
    ]


def needs_tensorflow_text(translator: Translator) -> bool:
    """Whether a SavedModel needs the ops of `tensorflow_text`."""
    from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer

    return any(
        isinstance(tokenizer, SentencePieceTokenizer)
        for tokenizer in (
            translator.source_tokenizer,
            translator.target_tokenizer,
        )
    )


def check_replaceable(output: Path, overwrite: bool) -> None:
    """Raise `ValueError` if a folder must not be replaced by a SavedModel.

    Args:
        output: Path.
        overwrite: Boolean. Whether an older SavedModel may be replaced.
    """
    if not output.exists():
        return
    if not output.is_dir():
        raise ValueError(f"{output} is a file; give a folder.")
    if not any(output.iterdir()):
        return
    if not (output / "saved_model.pb").is_file():
        raise ValueError(
            f"{output} holds something else than a SavedModel; give another "
            "folder."
        )
    if not overwrite:
        raise ValueError(
            f"{output} holds a SavedModel already; give another folder, or "
            "--overwrite."
        )


def write_saved_model(
    translator: Translator, output: Path, jit_compile: bool = True
) -> None:
    """Write a SavedModel; one that is there stays until the new one is whole.

    Args:
        translator: What to write.
        output: Path of the folder, see `check_replaceable`.
        jit_compile: Boolean. Whether XLA compiles it. Defaults to `True`.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    new = output.with_name(f".new.{output.name}")
    old = output.with_name(f".old.{output.name}")
    shutil.rmtree(new, ignore_errors=True)
    try:
        translator.export(new, jit_compile)
        if output.exists():
            shutil.rmtree(old, ignore_errors=True)
            output.rename(old)
        new.rename(output)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _needed_import(translator: Translator) -> str:
    if needs_tensorflow_text(translator):
        return ", tensorflow_text"
    return ""

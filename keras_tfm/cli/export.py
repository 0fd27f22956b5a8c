"""`keras-tfm export`: a translator for TensorFlow and for other programs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_tfm.cli.console import say
from keras_tfm.cli.export_request import SAVED_MODEL
from keras_tfm.cli.export_request import ExportRequest
from keras_tfm.cli.export_request import FormatName
from keras_tfm.cli.export_request import Quantization
from keras_tfm.cli.export_request import TokenizerOps
from keras_tfm.cli.export_usage import needed_packages
from keras_tfm.cli.export_usage import signatures
from keras_tfm.cli.export_usage import usage
from keras_tfm.cli.search_options import BeamsOption
from keras_tfm.cli.search_options import CoveragePenaltyOption
from keras_tfm.cli.search_options import LengthPenaltyOption
from keras_tfm.cli.search_options import MaxLengthFactorOption
from keras_tfm.cli.search_options import MinLengthOption
from keras_tfm.cli.search_options import NoRepeatNgramOption
from keras_tfm.cli.search_options import PenaltyOption
from keras_tfm.cli.search_options import SearchOptions
from keras_tfm.cli.tensorflow_setup import held_back_errors
from keras_tfm.cli.tensorflow_setup import start_tensorflow

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator


def export(  # noqa: PLR0913 (each is an option)
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
            help="Folder to write to; for litert and onnx a file .tflite or "
            ".onnx.",
            show_default=False,
        ),
    ],
    format_name: Annotated[
        FormatName,
        typer.Option(
            "--format",
            help="saved_model: strings to strings, for TensorFlow. "
            "ctranslate2: for the package of that name. litert, onnx: a "
            "decoder from ids to ids.",
        ),
    ] = FormatName.saved_model,
    jit: Annotated[
        bool | None,
        typer.Option(
            "--jit/--no-jit",
            help="Whether XLA compiles a SavedModel where it is loaded.",
            show_default="jit",
        ),
    ] = None,
    tokenizer_ops: Annotated[
        TokenizerOps | None,
        typer.Option(
            "--tokenizer-ops",
            help="Of a SavedModel. core: TensorFlow alone loads it, also with "
            "subwords; a little slower.",
            show_default="tf_text",
        ),
    ] = None,
    quantization: Annotated[
        Quantization | None,
        typer.Option(
            "--quantization",
            help="What the weights are stored in: int8 for a SavedModel, any "
            "of them for ctranslate2.",
            show_default="float32",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace an export that is there already."
        ),
    ] = False,
    beams: BeamsOption = 1,
    nbest: Annotated[
        int | None,
        typer.Option(
            "--nbest",
            min=1,
            help="Translations that translate_nbest of a SavedModel returns.",
            rich_help_panel="Search",
            show_default="as many as --beams",
        ),
    ] = None,
    length_penalty: LengthPenaltyOption = None,
    penalty: PenaltyOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    min_length: MinLengthOption = None,
    max_length_factor: MaxLengthFactorOption = None,
    no_repeat_ngram: NoRepeatNgramOption = None,
) -> None:
    """Write a SavedModel of strings to strings, or another program's format."""
    request = ExportRequest.from_options(
        format=format_name,
        jit=jit,
        tokenizer_ops=tokenizer_ops,
        quantization=quantization,
        search=SearchOptions.from_options(
            beams=beams,
            nbest=nbest,
            length_penalty=length_penalty,
            penalty=penalty,
            coverage_penalty=coverage_penalty,
            min_length=min_length,
            max_length_factor=max_length_factor,
            no_repeat_ngram=no_repeat_ngram,
        ),
    )
    request.check_output(output, overwrite)
    start_tensorflow()
    from keras_tfm.tasks.translation import Translator

    translator = Translator.load(folder)
    with held_back_errors():  # Converters talk.
        write_export(translator, output, request)
    say(f"Wrote the {request.title} {output}.")
    for line in signatures(translator, request):
        say(f"  {line}")
    say()
    packages = needed_packages(translator, request)
    say(f"Use it, in any program that has {packages}:")
    say()
    for line in usage(translator, output, request, folder):
        say(f"    {line}")


def check_replaceable(output: Path, overwrite: bool) -> None:
    """Raise `ValueError` if a folder must not be replaced by a SavedModel.

    Args:
        output: Path.
        overwrite: Boolean. Whether an older SavedModel may be replaced.
    """
    SAVED_MODEL.check_output(output, overwrite)


def write_saved_model(
    translator: Translator, output: Path, jit_compile: bool = True
) -> None:
    """Write a SavedModel; one that is there stays until the new one is whole.

    Args:
        translator: What to write.
        output: Path of the folder, see `check_replaceable`.
        jit_compile: Boolean. Whether XLA compiles it. Defaults to `True`.
    """
    write_export(translator, output, ExportRequest(jit=jit_compile))


def write_export(
    translator: Translator, output: Path, request: ExportRequest
) -> None:
    """Write an export; one that is there stays until the new one is whole.

    Args:
        translator: What to write.
        output: Path of the folder or file, see `ExportRequest.check_output`.
        request: As what.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    new = output.with_name(f".new.{output.name}")
    old = output.with_name(f".old.{output.name}")
    _remove(new)
    try:
        request.write(translator, new)
        if output.exists():
            _remove(old)
            output.rename(old)
        new.rename(output)
        _remove(old)
    finally:
        _remove(new)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

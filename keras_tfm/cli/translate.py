"""`keras-tfm translate`: from arguments, a file or standard input."""

from __future__ import annotations

import contextlib
import gzip
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import BinaryIO

import typer

from keras_tfm.cli.console import note
from keras_tfm.cli.tensorflow_setup import start_tensorflow

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.translation import Translator


def translate(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            help="Folder of a trained translator.",
            show_default=False,
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]...",
            help="Texts to translate. Without any: standard input, line by "
            "line.",
            show_default=False,
        ),
    ] = None,
    input_file: Annotated[
        str | None,
        typer.Option(
            "--input",
            help="File with one text a line (plain or .gz); - is standard "
            "input.",
            show_default=False,
        ),
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="File to write to. Default: standard output.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Translate texts, one line for each; an empty line stays one."""
    if texts and input_file is not None:
        raise ValueError(
            "Give texts or --input, not both. Received: "
            f"{texts[0]!r} and --input {input_file}."
        )
    with contextlib.ExitStack() as stack:
        # Before the model is loaded: a wrong path is told at once.
        source = None
        if not texts:
            source = stack.enter_context(_opened_input(input_file))
        write = stack.enter_context(_opened_output(output_file))
        start_tensorflow()
        from keras_tfm.cli.text_lines import line_chunks
        from keras_tfm.tasks.translation import Translator

        translator = Translator.load(folder)
        if source is None:
            chunks: Iterable[list[str]] = [texts or []]
            name = "argument"
        else:
            stream, name = source
            chunks = line_chunks(stream, name)
            name = f"{name}, line"
            if stream.isatty():
                note("type a text and press Enter; Ctrl-D ends.")
        for lines in translated(translator, chunks, name):
            write(lines)


def translated(
    translator: Translator, chunks: Iterable[list[str]], name: str
) -> Iterator[list[str]]:
    """Translate chunks of lines.

    Args:
        translator: What translates.
        chunks: Lists of texts.
        name: String in front of a line's number, for messages.

    Yields:
        List of translations, as many as there are texts.

    Raises:
        ValueError: If a text is too long; the lines before it come first.
    """
    before = 0
    for texts in chunks:
        place, problem = first_too_long(translator, texts)
        good = texts[:place]
        if good:
            yield [
                # One line in, one line out.
                " ".join(text.splitlines())
                for text in translator.translate(good)
            ]
        if problem:
            raise ValueError(f"{name} {before + place + 1}: {problem}")
        before += len(texts)


def first_too_long(
    translator: Translator, texts: list[str]
) -> tuple[int, str | None]:
    """Find the first text that the model was not made for.

    Args:
        translator: The translator.
        texts: List of strings.

    Returns:
        Its index, and what is wrong; or the number of texts, and `None`.
    """
    rows = translator.source_tokenizer.tokenize(texts)
    limit = translator.source_lengths[-1]
    for index, length in enumerate(rows.row_lengths().numpy().tolist()):
        if length + 1 > limit:
            return index, (
                f"the text takes {length + 1} tokens with its end, and the "
                f"model was made for at most {limit}; shorten or split it."
            )
    return len(texts), None


def check_pairs(translator: Translator, pairs: SentencePairs) -> None:
    """Raise `ValueError` if a source is longer than a model was made for."""
    place, problem = first_too_long(translator, list(pairs.sources))
    if problem:
        raise ValueError(f"{pairs.name}, pair {place + 1}: {problem}")


@contextlib.contextmanager
def _opened_input(path: str | None) -> Iterator[tuple[BinaryIO, str]]:
    if path in (None, "-"):
        yield sys.stdin.buffer, "standard input"
        return
    if Path(path).is_dir():
        raise ValueError(f"{path}: this is a folder; give a text file.")
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as stream:
        yield stream, path


@contextlib.contextmanager
def _opened_output(path: Path | None):
    if path is None:
        stream = sys.stdout.buffer

        def write(lines: list[str]) -> None:
            stream.write("".join(f"{line}\n" for line in lines).encode())
            stream.flush()

        yield write
        return
    # What was there stays until all is translated.
    temporary = path.with_name(f".new.{path.name}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            yield lambda lines: file.writelines(f"{line}\n" for line in lines)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

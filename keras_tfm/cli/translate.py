"""`keras-tfm translate`: from arguments, a file or standard input."""

from __future__ import annotations

import contextlib
import gzip
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import BinaryIO

import typer

from keras_tfm.cli.console import note
from keras_tfm.cli.search_options import BeamsOption
from keras_tfm.cli.search_options import CoveragePenaltyOption
from keras_tfm.cli.search_options import LengthPenaltyOption
from keras_tfm.cli.search_options import MaxLengthFactorOption
from keras_tfm.cli.search_options import MinLengthOption
from keras_tfm.cli.search_options import NoRepeatNgramOption
from keras_tfm.cli.search_options import PenaltyOption
from keras_tfm.cli.search_options import SampleOption
from keras_tfm.cli.search_options import SearchOptions
from keras_tfm.cli.search_options import SeedOption
from keras_tfm.cli.search_options import TemperatureOption
from keras_tfm.cli.search_options import TopKOption
from keras_tfm.cli.search_options import TopPOption
from keras_tfm.cli.tensorflow_setup import start_tensorflow

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.translation import Translator


def translate(  # noqa: PLR0913 (each is an option)
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
    nbest: Annotated[
        int | None,
        typer.Option(
            "--nbest",
            min=1,
            help="Print up to so many translations of a text, the best first, "
            "each on a line: its score, a tab, the translation.",
            rich_help_panel="Search",
            show_default=False,
        ),
    ] = None,
    beams: BeamsOption = 1,
    length_penalty: LengthPenaltyOption = None,
    penalty: PenaltyOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    min_length: MinLengthOption = None,
    max_length_factor: MaxLengthFactorOption = None,
    no_repeat_ngram: NoRepeatNgramOption = None,
    sample: SampleOption = False,
    temperature: TemperatureOption = None,
    top_k: TopKOption = None,
    top_p: TopPOption = None,
    seed: SeedOption = None,
) -> None:
    """Translate texts, one line for each; an empty line stays one.

    With --nbest there are several lines for each, and an empty text gives one:
    the score 0.0000, a tab and nothing.
    """
    search = SearchOptions.from_options(
        nbest=nbest,
        beams=beams,
        length_penalty=length_penalty,
        penalty=penalty,
        coverage_penalty=coverage_penalty,
        min_length=min_length,
        max_length_factor=max_length_factor,
        no_repeat_ngram=no_repeat_ngram,
        sample=sample,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
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
        write = stack.enter_context(opened_output(output_file))
        start_tensorflow()
        from keras_tfm.cli.text_lines import line_chunks
        from keras_tfm.tasks.translation import Translator

        translator = Translator.load(folder)
        search.apply(translator)
        if source is None:
            chunks: Iterable[list[str]] = [texts or []]
            name = "argument"
        else:
            stream, name = source
            chunks = line_chunks(stream, name)
            name = f"{name}, line"
            if stream.isatty():
                note("type a text and press Enter; Ctrl-D ends.")
        several = nbest is not None
        for lines in translated(translator, chunks, name, several):
            write(lines)


def translated(
    translator: Translator,
    chunks: Iterable[list[str]],
    name: str,
    several: bool = False,
) -> Iterator[list[str]]:
    """Translate chunks of lines.

    Args:
        translator: What translates.
        chunks: Lists of texts.
        name: String in front of a line's number, for messages.
        several: Boolean. Whether to give every hypothesis of a text, with its
            score and a tab in front. Defaults to `False`: the best alone.

    Yields:
        List of translations, as many as there are texts; or of hypotheses.

    Raises:
        ValueError: If a text is too long; the lines before it come first.
    """
    before = 0
    for texts in chunks:
        place, problem = first_too_long(translator, texts)
        good = texts[:place]
        if good and several:
            yield [
                f"{hypothesis.score:.4f}\t{_one_line(hypothesis.text)}"
                for hypotheses in translator.translate_nbest(good)
                for hypothesis in hypotheses
            ]
        elif good:
            yield [_one_line(text) for text in translator.translate(good)]
        if problem:
            raise ValueError(f"{name} {before + place + 1}: {problem}")
        before += len(texts)


def first_too_long(
    translator: Translator, texts: list[str], side: str = "source"
) -> tuple[int, str | None]:
    """Find the first text that the model was not made for.

    Args:
        translator: The translator.
        texts: List of strings.
        side: `"source"` or `"target"`: what the texts are. Defaults to
            `"source"`.

    Returns:
        Its index, and what is wrong; or the number of texts, and `None`.
    """
    tokenizer = getattr(translator, f"{side}_tokenizer")
    limit = translator.source_lengths[-1]
    name = "text" if side == "source" else side
    rows = tokenizer.tokenize(texts)
    for index, length in enumerate(rows.row_lengths().numpy().tolist()):
        if length + 1 > limit:
            return index, (
                f"the {name} takes {length + 1} tokens with its end, and the "
                f"model was made for at most {limit}; shorten or split it."
            )
    return len(texts), None


def check_pairs(
    translator: Translator, pairs: SentencePairs, targets: bool = False
) -> None:
    """Raise `ValueError` if a text is longer than a model was made for.

    Args:
        translator: The translator.
        pairs: What to look at.
        targets: Boolean. Whether to look at the targets too, not only at the
            sources. Defaults to `False`.
    """
    for side in ("source", "target")[: 1 + targets]:
        texts = list(getattr(pairs, f"{side}s"))
        place, problem = first_too_long(translator, texts, side)
        if problem:
            raise ValueError(f"{pairs.name}, pair {place + 1}: {problem}")


def _one_line(text: str) -> str:
    # One line in, one line out.
    return " ".join(text.splitlines())


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
def opened_output(
    path: Path | None,
) -> Iterator[Callable[[list[str]], None]]:
    """Open a file, which is there when all is written, or standard output.

    Args:
        path: Path, or `None` for the standard output.

    Yields:
        Function that writes a list of lines.
    """
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

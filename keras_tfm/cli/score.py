"""`keras-tfm score`: how likely a translator finds given translations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_tfm.cli.console import note
from keras_tfm.cli.data_options import DataSource
from keras_tfm.cli.data_options import SourceLanguageOption
from keras_tfm.cli.data_options import SourceOption
from keras_tfm.cli.data_options import SplitOption
from keras_tfm.cli.data_options import TargetLanguageOption
from keras_tfm.cli.data_options import TargetOption
from keras_tfm.cli.data_options import TfdsOption
from keras_tfm.cli.data_options import TranslateFolderOption
from keras_tfm.cli.data_options import TsvOption
from keras_tfm.cli.tensorflow_setup import start_tensorflow
from keras_tfm.cli.translate import check_pairs
from keras_tfm.cli.translate import opened_output

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.translation import Translator


def score(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            help="Folder of a trained translator.",
            show_default=False,
        ),
    ],
    source: SourceOption = None,
    target: TargetOption = None,
    tsv: TsvOption = None,
    tfds: TfdsOption = None,
    translate_folder: TranslateFolderOption = None,
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    split: SplitOption = "test",
    per_token: Annotated[
        bool,
        typer.Option(
            "--per-token",
            help="Divide each by the tokens of its target, the end included.",
        ),
    ] = False,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="File to write to. Default: standard output.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the log-probability of each target, one line a pair."""
    data = DataSource.from_options(
        source=source,
        target=target,
        tsv=tsv,
        tfds=tfds,
        translate_folder=translate_folder,
        source_language=source_language,
        target_language=target_language,
        split=split,
    )
    if not data.is_given():
        data.read()  # Says what is missing.
    with contextlib.ExitStack() as stack:
        # Before the model is loaded: a wrong path is told at once.
        write = stack.enter_context(opened_output(output_file))
        start_tensorflow()
        from keras_tfm.tasks.translation import Translator

        translator = Translator.load(folder)
        pairs = data.read()
        check_pairs(translator, pairs, targets=True)
        scores = translator.score(pairs.sources, pairs.targets).tolist()
        tokens = count_tokens(translator, pairs)
        write(
            [
                # A source without a token, whose score is 0, counts none.
                f"{value / (count or 1) if per_token else value:.4f}"
                for value, count in zip(scores, tokens, strict=True)
            ]
        )
    note(f"{pairs.name}: {summary(scores, tokens)}")


def count_tokens(translator: Translator, pairs: SentencePairs) -> list[int]:
    """Count the tokens that the score of each pair is about.

    Args:
        translator: What has scored them.
        pairs: The pairs.

    Returns:
        List of integers, the tokens of each target with its end; 0 for a pair
        that is not scored, because nothing is left of its source.
    """
    lengths = (
        tokenizer.tokenize(list(texts)).row_lengths().numpy().tolist()
        for tokenizer, texts in (
            (translator.source_tokenizer, pairs.sources),
            (translator.target_tokenizer, pairs.targets),
        )
    )
    return [
        target + 1 if source else 0
        for source, target in zip(*lengths, strict=True)
    ]


def summary(scores: Sequence[float], tokens: Sequence[int]) -> str:
    """Say in a line how likely all targets are.

    Args:
        scores: The log-probability of each target.
        tokens: The tokens of each.

    Example:
        >>> summary([-3.0, -5.0], [3, 1])
        '2 pairs, 4 tokens, log-probability a token -2.0000, perplexity 7.3891'
    """
    count = sum(tokens)
    mean = sum(scores) / max(count, 1)
    return (
        f"{len(scores):,} pairs, {count:,} tokens, log-probability a token "
        f"{mean:.4f}, perplexity {math.exp(-mean):.4f}"
    )

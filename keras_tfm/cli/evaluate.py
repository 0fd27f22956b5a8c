"""`keras-tfm evaluate`: scores of a translator on pairs it has not seen."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_tfm.cli.console import say
from keras_tfm.cli.data_options import DataSource
from keras_tfm.cli.data_options import SourceLanguageOption
from keras_tfm.cli.data_options import SourceOption
from keras_tfm.cli.data_options import TargetLanguageOption
from keras_tfm.cli.data_options import TargetOption
from keras_tfm.cli.data_options import TfdsOption
from keras_tfm.cli.data_options import TranslateFolderOption
from keras_tfm.cli.data_options import TsvOption
from keras_tfm.cli.tensorflow_setup import start_tensorflow
from keras_tfm.cli.translate import first_too_long

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.scores import Score
    from keras_tfm.tasks.translation import Translator


class MetricName(StrEnum):
    """What a translator is scored by."""

    bleu = "bleu"
    exact = "exact"


class BleuTokenizer(StrEnum):
    """How BLEU cuts text into words."""

    words = "13a"
    chinese = "zh"
    international = "intl"
    characters = "char"
    none = "none"


MetricOption = Annotated[
    MetricName,
    typer.Option(
        "--metric", help="bleu: BLEU and chrF. exact: share of equal texts."
    ),
]
TokenizeOption = Annotated[
    BleuTokenizer,
    typer.Option(
        "--tokenize",
        help="How BLEU cuts text into words: zh for Chinese, none for text "
        "that is cut already.",
    ),
]
LowercaseOption = Annotated[
    bool, typer.Option("--lowercase", help="Whether case counts for nothing.")
]


def evaluate(  # noqa: PLR0913 (each is an option)
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
    split: Annotated[
        str,
        typer.Option("--split", help="Split of --tfds or --translate-folder."),
    ] = "test",
    metric: MetricOption = MetricName.bleu,
    tokenize: TokenizeOption = BleuTokenizer.words,
    lowercase: LowercaseOption = False,
) -> None:
    """Translate the sources, and score them against the targets."""
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
    start_tensorflow()
    from keras_tfm.tasks.translation import Translator

    translator = Translator.load(folder)
    pairs = data.read()
    say(f"{len(pairs):,} pairs of {pairs.name}")
    for score in checked_scores(
        translator, pairs, metric.value, tokenize.value, lowercase
    ):
        say(str(score))


def checked_scores(
    translator: Translator,
    pairs: SentencePairs,
    metric: str,
    tokenize: str,
    lowercase: bool = False,
) -> list[Score]:
    """Score a translator; a text that is too long is named by its place.

    Raises:
        ValueError: If a source is longer than the model was made for.
    """
    place, problem = first_too_long(translator, list(pairs.sources))
    if problem:
        raise ValueError(f"{pairs.name}, source {place + 1}: {problem}")
    return translator.evaluate(pairs, metric, tokenize, lowercase)

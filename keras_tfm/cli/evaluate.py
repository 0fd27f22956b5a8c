"""`keras-tfm evaluate`: scores of a translator on pairs it has not seen."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from keras_tfm.cli.console import say
from keras_tfm.cli.data_options import DataSource
from keras_tfm.cli.data_options import DatesOption
from keras_tfm.cli.data_options import SourceLanguageOption
from keras_tfm.cli.data_options import SourceOption
from keras_tfm.cli.data_options import SplitOption
from keras_tfm.cli.data_options import TargetLanguageOption
from keras_tfm.cli.data_options import TargetOption
from keras_tfm.cli.data_options import TfdsOption
from keras_tfm.cli.data_options import TranslateFolderOption
from keras_tfm.cli.data_options import TsvOption
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
from keras_tfm.cli.translate import check_pairs


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


_PANEL = "Scores"

MetricOption = Annotated[
    MetricName | None,
    typer.Option(
        "--metric",
        help="bleu: BLEU and chrF. exact: share of equal texts.",
        rich_help_panel=_PANEL,
        show_default="bleu",
    ),
]
TokenizeOption = Annotated[
    BleuTokenizer | None,
    typer.Option(
        "--tokenize",
        help="How BLEU cuts text into words: zh for Chinese, none for text "
        "that is cut already.",
        rich_help_panel=_PANEL,
        show_default="13a",
    ),
]
LowercaseOption = Annotated[
    bool,
    typer.Option(
        "--lowercase",
        help="Whether case counts for nothing in BLEU.",
        rich_help_panel=_PANEL,
    ),
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
    dates: DatesOption = None,
    tfds: TfdsOption = None,
    translate_folder: TranslateFolderOption = None,
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    split: SplitOption = "test",
    metric: MetricOption = None,
    tokenize: TokenizeOption = None,
    lowercase: LowercaseOption = False,
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
    """Translate the sources, and score them against the targets."""
    search = SearchOptions.from_options(
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
    data = DataSource.from_options(
        source=source,
        target=target,
        tsv=tsv,
        dates=dates,
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
    search.apply(translator)
    pairs = data.read()
    say(f"{len(pairs):,} pairs of {pairs.name}")
    check_pairs(translator, pairs)
    for score in translator.evaluate(
        pairs, metric or MetricName.bleu, tokenize, lowercase
    ):
        say(str(score))

"""The options that say where sentence pairs come from."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs

_PANEL = "Data: one of the five"

SourceOption = Annotated[
    Path | None,
    typer.Option(
        "--source",
        help="Text file, one source text a line (UTF-8, plain or .gz).",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TargetOption = Annotated[
    Path | None,
    typer.Option(
        "--target",
        help="Text file whose line n translates line n of --source.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TsvOption = Annotated[
    Path | None,
    typer.Option(
        "--tsv",
        help="Text file with a source, a tab and a target on each line.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
DatesOption = Annotated[
    int | None,
    typer.Option(
        "--dates",
        help="So many dates in 42 languages and regions, written by Babel, and "
        "their ISO 8601.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TfdsOption = Annotated[
    str | None,
    typer.Option(
        "--tfds",
        help="Data set of tensorflow-datasets, such as "
        "ted_hrlr_translate/pt_to_en.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TranslateFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--translate-folder",
        help="Folder of files LANGUAGE.SPLIT.txt, as of tfds.TranslateFolder.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SourceLanguageOption = Annotated[
    str | None,
    typer.Option(
        "--source-language",
        help="Language to translate from, with --tfds or --translate-folder.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TargetLanguageOption = Annotated[
    str | None,
    typer.Option(
        "--target-language",
        help="Language to translate to, with --tfds or --translate-folder.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SplitOption = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="Split of --tfds or --translate-folder.",
        rich_help_panel=_PANEL,
        show_default="train; test to evaluate or score",
    ),
]


@dataclasses.dataclass(frozen=True)
class DataSource:
    """Where sentence pairs come from, as the options say it.

    Attributes:
        source: Path of the sources, or `None`.
        target: Path of the targets, or `None`.
        tsv: Path of both, or `None`.
        dates: Integer, how many dates to generate, or `None`.
        tfds: Name of a data set, or `None`.
        translate_folder: Path of a folder, or `None`.
        source_language: String, or `None`.
        target_language: String, or `None`.
        split: String, for `tfds`, `translate_folder` and `dates`.
        prefix: String in front of the options' names, in messages.
    """

    source: str | None = None
    target: str | None = None
    tsv: str | None = None
    dates: int | None = None
    tfds: str | None = None
    translate_folder: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    split: str = "train"
    prefix: str = ""

    @classmethod
    def from_options(cls, **options: Any) -> DataSource:
        """Make one of options, with paths that hold in any folder.

        Raises:
            ValueError: If the options do not name one source of pairs.
        """
        absolute = {
            name: str(value.absolute()) if isinstance(value, Path) else value
            for name, value in options.items()
        }
        data = cls(**absolute)
        data.check()
        return data

    def is_given(self) -> bool:
        """Whether any option names data."""
        return any(
            (
                self.source,
                self.target,
                self.tsv,
                self.dates,
                self.tfds,
                self.translate_folder,
            )
        )

    def check(self) -> None:
        """Raise `ValueError` unless the options name one source of pairs."""
        option = f"--{self.prefix}"
        if bool(self.source) != bool(self.target):
            given, missing = (
                ("source", "target") if self.source else ("target", "source")
            )
            raise ValueError(
                f"{option}{given} needs {option}{missing}: line n of one "
                "translates line n of the other."
            )
        given = [
            name
            for name in ("source", "tsv", "dates", "tfds", "translate_folder")
            if getattr(self, name)
        ]
        if len(given) > 1:
            names = " and ".join(
                option + name.replace("_", "-") for name in given
            )
            raise ValueError(f"Give one kind of data. Received: {names}.")
        if self.translate_folder and not (
            self.source_language and self.target_language
        ):
            raise ValueError(
                "--translate-folder needs --source-language and "
                "--target-language."
            )

    def read(self) -> SentencePairs:
        """Read the pairs.

        Raises:
            ValueError: If no data are named.
            DataError: If the data are wrong; the message names file and line.
        """
        from keras_tfm.data.sentence_pairs import read_parallel
        from keras_tfm.data.sentence_pairs import read_tfds
        from keras_tfm.data.sentence_pairs import read_translate_folder
        from keras_tfm.data.sentence_pairs import read_tsv

        languages = (self.source_language, self.target_language)
        if self.source:
            return read_parallel(self.source, self.target)
        if self.tsv:
            return read_tsv(self.tsv)
        if self.dates:
            from keras_tfm.data.dates import date_pairs

            return date_pairs(self.dates, seed=0, split=self.split)
        if self.tfds:
            return read_tfds(self.tfds, self.split, *languages)
        if self.translate_folder:
            return read_translate_folder(
                self.translate_folder, *languages, self.split
            )
        raise ValueError(
            "No data. Give --source and --target, --tsv, --dates, --tfds or "
            "--translate-folder."
        )

"""Pairs of a text and its translation, from files and from data sets."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import overload

from keras_tfm.checks import check_positive_int
from keras_tfm.data.text_files import DataError
from keras_tfm.data.text_files import read_lines

__all__ = [
    "DataError",
    "SentencePairs",
    "read_lines",
    "read_parallel",
    "read_tfds",
    "read_translate_folder",
    "read_tsv",
]


@dataclass(frozen=True)
class SentencePairs:
    """Hold source texts and their target texts, pair by pair.

    Args:
        sources: Sequence of strings.
        targets: Sequence of strings, as many as `sources`.
        name: String. Where the pairs come from, for messages. Defaults to
            `"pairs"`.

    Raises:
        DataError: If the numbers differ, there is no pair, or a text is empty.

    Example:
        >>> pairs = SentencePairs(["eins", "zwei"], ["one", "two"])
        >>> len(pairs)
        2
        >>> pairs[1]
        ('zwei', 'two')
        >>> pairs.take(1).targets
        ('one',)
    """

    sources: Sequence[str]
    targets: Sequence[str]
    name: str = "pairs"

    def __post_init__(self) -> None:
        for side in ("sources", "targets"):
            texts = getattr(self, side)
            if isinstance(texts, str):
                raise DataError(
                    f"{self.name}: `{side}` must be a sequence of strings; "
                    f"received one string {texts[:40]!r}."
                )
            object.__setattr__(self, side, tuple(texts))
        if len(self.sources) != len(self.targets):
            raise DataError(
                f"{self.name}: {len(self.sources)} sources but "
                f"{len(self.targets)} targets; give one target a source."
            )
        if not self.sources:
            raise DataError(f"{self.name}: there are no pairs; give some.")
        for side in ("sources", "targets"):
            for index, text in enumerate(getattr(self, side)):
                if not isinstance(text, str) or not text.strip():
                    raise DataError(
                        f"{self.name}: {side}[{index}] must be a text that "
                        f"is not empty; received {text!r}."
                    )

    def __len__(self) -> int:
        return len(self.sources)

    @overload
    def __getitem__(self, index: int) -> tuple[str, str]: ...

    @overload
    def __getitem__(self, index: slice) -> SentencePairs: ...

    def __getitem__(
        self, index: int | slice
    ) -> tuple[str, str] | SentencePairs:
        if isinstance(index, slice):
            return SentencePairs(
                self.sources[index], self.targets[index], self.name
            )
        return self.sources[index], self.targets[index]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.sources, self.targets, strict=True)

    def take(self, number: int) -> SentencePairs:
        """Return the first `number` pairs, or all if there are fewer."""
        return self[: check_positive_int("number", number)]


def read_parallel(
    source_path: str | Path, target_path: str | Path
) -> SentencePairs:
    """Read two text files whose lines translate each other.

    Args:
        source_path: Path of a UTF-8 text file, plain or `.gz`.
        target_path: Path of the file with the translations.

    Returns:
        A `SentencePairs`.

    Raises:
        DataError: If a file or line is wrong (see `read_lines`), or the
            numbers of lines differ.
    """
    sources = read_lines(source_path)
    targets = read_lines(target_path)
    if len(sources) != len(targets):
        raise DataError(
            f"{source_path} has {len(sources)} lines but {target_path} has "
            f"{len(targets)}; line n of one must translate line n of the "
            "other."
        )
    return SentencePairs(sources, targets, f"{source_path} + {target_path}")


def read_tsv(path: str | Path) -> SentencePairs:
    """Read a text file with a source, a tab and a target on each line.

    Args:
        path: Path of a UTF-8 text file, plain or `.gz`. No header line; a
            quotation mark is a character like any other.

    Returns:
        A `SentencePairs`.

    Raises:
        DataError: If the file or a line is wrong (see `read_lines`), or a
            line has other than two columns, or an empty one.
    """
    sources = []
    targets = []
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise DataError(
                f"{path}, line {number}: expected two columns with one tab "
                f"between them; received {len(columns)} in {line[:60]!r}."
            )
        for side, column in zip(("source", "target"), columns, strict=True):
            if not column.strip():
                raise DataError(
                    f"{path}, line {number}: the {side} column is empty; "
                    "fill it, or remove the line."
                )
        sources.append(columns[0])
        targets.append(columns[1])
    return SentencePairs(sources, targets, str(path))


def read_translate_folder(
    root: str | Path,
    source_language: str,
    target_language: str,
    split: str,
) -> SentencePairs:
    """Read a folder in the layout of `tfds.TranslateFolder`.

    The folder holds files `LANGUAGE.SPLIT.txt` (or `.txt.gz`), one sentence a
    line. They are read here, and not by `tfds`, so that an error can name the
    file and the line; `read_tfds` takes a `tfds.TranslateFolder` too.

    Args:
        root: Path of the folder.
        source_language: String, such as `"pt"`.
        target_language: String, such as `"en"`.
        split: String, such as `"train"`.

    Returns:
        A `SentencePairs`.

    Raises:
        DataError: If the folder, a language or the split is missing, or a
            file is wrong.
    """
    root = Path(root)
    if not root.is_dir():
        raise DataError(f"{root}: there is no such folder; check the path.")
    files = {}
    for path in sorted(root.iterdir(), reverse=True):
        # Plain files come last here, and so win over packed ones.
        parts = path.name.removesuffix(".gz").split(".")
        if len(parts) == 3 and parts[2] == "txt":
            files[parts[0], parts[1]] = path
    for language in (source_language, target_language):
        if (language, split) not in files:
            known = [s for name, s in files if name == language]
            languages = {name for name, _ in files}
            raise DataError(
                f"{root}: there is no file {language}.{split}.txt; "
                f"{_names('splits', known)} of {language!r}, and "
                f"{_names('languages', languages)}."
            )
    return read_parallel(
        files[source_language, split], files[target_language, split]
    )


def read_tfds(
    name: Any,
    split: str,
    source_language: str | None = None,
    target_language: str | None = None,
    data_dir: str | Path | None = None,
    download: bool = True,
) -> SentencePairs:
    """Read a translation data set of `tensorflow-datasets`.

    Args:
        name: String, such as `"ted_hrlr_translate/pt_to_en"`, or a
            `tfds.core.DatasetBuilder`, such as `tfds.TranslateFolder(root)`.
        split: String, such as `"train"` or `"train[:10%]"`.
        source_language: String. Defaults to the data set's own source.
        target_language: String. Defaults to the data set's own target.
        data_dir: Path of the prepared data sets. Defaults to that of `tfds`.
        download: Boolean. Whether a data set that is not there may be
            downloaded; without a network `tfds` tries for minutes before it
            fails. Defaults to `True`.

    Returns:
        A `SentencePairs`.

    Raises:
        DataError: If the data set or the split is missing, cannot be
            downloaded, or holds no such languages.
        ImportError: If `tensorflow-datasets` is missing.
    """
    tfds = _import_tfds()
    builder = name
    if isinstance(name, str):
        try:
            builder = tfds.builder(name, data_dir=data_dir)
        except Exception as error:  # each data set has its own
            raise DataError(
                f"The data set {name!r} cannot be found: {_first_line(error)}"
            ) from error
    name = builder.info.full_name
    # A `TranslateFolder` has nothing to prepare, and says so by an error.
    if not isinstance(builder, tfds.TranslateFolder):
        _prepare(builder, download)
    languages = _languages(builder.info, source_language, target_language)
    try:
        examples = builder.as_dataset(split=split)
    except Exception as error:  # ValueError, or KeyError in older versions
        raise DataError(
            f"The data set {name!r} has no split {split!r}; "
            f"{_names('splits', builder.info.splits)}."
        ) from error
    rows = [
        [row[language].decode("utf-8") for language in languages]
        for row in tfds.as_numpy(examples)
    ]
    return SentencePairs(
        [row[0] for row in rows], [row[1] for row in rows], f"{name}, {split}"
    )


def _prepare(builder: Any, download: bool) -> None:
    missing = (
        f"The data set {builder.info.full_name!r} is not on this machine "
        f"(in {builder.data_dir})"
    )
    if not download and not builder.is_prepared():
        raise DataError(f"{missing}; set download=True, or read files instead.")
    try:
        builder.download_and_prepare()
    except Exception as error:  # each data set and network has its own
        raise DataError(
            f"{missing} and cannot be downloaded: {type(error).__name__}: "
            f"{_first_line(error)} Prepare it where there is a network, or "
            "read files instead."
        ) from error


def _languages(
    info: Any, source_language: str | None, target_language: str | None
) -> tuple[str, str]:
    default = info.supervised_keys or (None, None)
    chosen = (source_language or default[0], target_language or default[1])
    for side, language in zip(("source", "target"), chosen, strict=True):
        if language not in info.features:
            raise DataError(
                f"The data set {info.full_name!r} has no {side} language "
                f"{language!r}; {_names('languages', info.features)}."
            )
    return chosen


def _names(what: str, names: Any) -> str:
    listed = ", ".join(repr(str(name)) for name in sorted(names))
    return (
        f"there are the {what} {listed}" if listed else f"there are no {what}"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _import_tfds() -> Any:
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise ImportError(
            "`read_tfds` needs the package `tensorflow-datasets`. "
            "Run: pip install tensorflow-datasets"
        ) from error
    return tensorflow_datasets

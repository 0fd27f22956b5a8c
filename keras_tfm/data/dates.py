"""Dates as people write them in 42 locales, paired with ISO 8601."""

import datetime
import re
import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from babel import Locale
from babel.dates import get_day_names
from babel.dates import get_month_names
from babel.dates import parse_pattern

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_whole_number
from keras_tfm.data.sentence_pairs import SentencePairs

# Places that usually write Latin digits and the Gregorian calendar, which is
# all that Babel writes: hence no Persian, Bengali or Thai, and Arabic as in
# the Emirates.
# fmt: off
LOCALES: tuple[str, ...] = (
    "af_ZA", "ar_AE", "bg_BG", "ca_ES", "cs_CZ", "da_DK", "de_DE",
    "el_GR", "en_GB", "en_US", "es_ES", "et_EE", "fi_FI", "fr_FR",
    "he_IL", "hi_IN", "hr_HR", "hu_HU", "id_ID", "it_IT", "ja_JP",
    "ka_GE", "ko_KR", "lt_LT", "lv_LV", "ms_MY", "nb_NO", "nl_NL",
    "pl_PL", "pt_BR", "ro_RO", "ru_RU", "sk_SK", "sl_SI", "sv_SE",
    "sw_KE", "ta_IN", "tr_TR", "uk_UA", "vi_VN", "zh_CN", "zh_TW",
)
# fmt: on
SPLITS: tuple[str, ...] = ("train", "validation", "test")
# A hundred years, so that two digits name each of them once.
FIRST_YEAR, LAST_YEAR = 1969, 2068

_STANDARD_FORMATS = ("full", "long", "medium", "short")
_NAME_WIDTHS = {3: "abbreviated", 4: "wide", 6: "short"}
_CONTEXTS = {
    "M": "format",
    "L": "stand-alone",
    "E": "format",
    "c": "stand-alone",
}
_FIELD = re.compile(r"%\((\w+)\)s")
_TYPEABLE = dict.fromkeys(map(ord, "\u00a0\u2009\u202f"), " ") | dict.fromkeys(
    map(ord, "\u061c\u200e\u200f"), ""
)


class _Writer(NamedTuple):
    """One pattern, ready to fill: `template % texts`."""

    template: str
    columns: tuple[str, ...]
    tables: tuple[np.ndarray, ...]


def date_patterns(locale: str) -> tuple[str, ...]:
    """List the CLDR patterns in which `locale` writes a whole date.

    These are the full, long, medium and short formats and every skeleton of
    year, month and day, with or without the weekday. Left out are eras,
    week-based years, days of three digits, and months by a letter that
    another month shares. No-break spaces are written as ordinary
    spaces and marks of text direction are dropped, as on a keyboard.

    Args:
        locale: String. One of `LOCALES`, such as `"fi_FI"`.

    Returns:
        Tuple of strings: the patterns, sorted, each once.

    Raises:
        ValueError: If `locale` is not one of `LOCALES`.

    Example:
        >>> date_patterns("sv_SE")[-2:]
        ('d MMMM y', 'y-MM-dd')
    """
    return tuple(_writers(check_choice("locale", locale, LOCALES)))


def write_date(date: datetime.date, locale: str, pattern: str) -> str:
    """Write `date` as people of `locale` do, with the locale in front.

    A year of two digits follows one rule: 69 to 99 are 1969 to 1999, and 00
    to 68 are 2000 to 2068. Other years are refused, so a text names one day.

    Args:
        date: A `datetime.date` from 1969 to 2068.
        locale: String. One of `LOCALES`.
        pattern: String. One of `date_patterns(locale)`.

    Returns:
        String: the locale, `|`, and the date in ordinary spaces.

    Raises:
        TypeError: If `date` is not a `datetime.date`.
        ValueError: If the year, the locale or the pattern is not known.

    Example:
        >>> write_date(datetime.date(2026, 3, 4), "en_US", "M/d/yy")
        'en_US|3/4/26'
    """
    if not isinstance(date, datetime.date):
        raise TypeError(
            "`date` must be a `datetime.date`, such as "
            f"`datetime.date(2026, 3, 4)`. Received: date={date!r}."
        )
    if not FIRST_YEAR <= date.year <= LAST_YEAR:
        raise ValueError(
            f"`date` must lie from {FIRST_YEAR} to {LAST_YEAR}, so that a "
            "year of two digits names one year. "
            f"Received: date={date.isoformat()}."
        )
    check_choice("pattern", pattern, date_patterns(locale))
    index = date.toordinal() - datetime.date(FIRST_YEAR, 1, 1).toordinal()
    return _write(_writers(locale)[pattern], np.array([index]))[0]


def date_pairs(count: int, seed: int, split: str = "train") -> SentencePairs:
    """Draw dates as written somewhere, each with its ISO 8601 form.

    Days, locales and, within a locale, patterns are drawn uniformly and with
    replacement. A day belongs to one split in every locale and pattern: of
    100 days, about 96 are for training, 2 for validation and 2 for testing.

    Args:
        count: Positive integer. Number of pairs.
        seed: Integer of at least 0. The same seed draws the same pairs, as
            long as Babel, whose data set the patterns and names, stays.
        split: String: `"train"`, `"validation"` or `"test"`. Defaults to
            `"train"`.

    Returns:
        `SentencePairs` of `count` sources and targets.

    Raises:
        ValueError: If `count`, `seed` or `split` is not as described.

    Example:
        >>> pairs = date_pairs(1000, seed=1)
        >>> len(pairs.sources), len(pairs.targets[0])
        (1000, 10)
    """
    count = check_positive_int("count", count)
    seed = check_whole_number("seed", seed)
    check_choice("split", split, SPLITS)
    # The split is part of the seed: else each split draws like the others.
    random = np.random.default_rng([seed, SPLITS.index(split)])
    calendar = _calendar()
    days = random.choice(np.flatnonzero(calendar["split"] == split), count)
    locales = random.integers(len(LOCALES), size=count)
    shares = random.random(count)
    sources = np.empty(count, dtype=object)
    for number, locale in enumerate(LOCALES):
        rows = np.flatnonzero(locales == number)
        writers = tuple(_writers(locale).values())
        chosen = (shares[rows] * len(writers)).astype(int)
        for place, writer in enumerate(writers):
            group = rows[chosen == place]
            sources[group] = _write(writer, days[group])
    return SentencePairs(
        sources=sources.tolist(),
        targets=calendar["iso"][days].tolist(),
        name=f"dates_{split}",
    )


def language_of(source: str) -> str:
    """Name the language and locale of a source text, for score tables.

    Args:
        source: String. A text that starts with a locale and `|`.

    Returns:
        String: the English name of the language, and the locale.

    Raises:
        ValueError: If the text does not start with one of `LOCALES` and `|`.

    Example:
        >>> language_of("fi_FI|4. maaliskuuta 2026")
        'Finnish (fi_FI)'
    """
    locale, bar, _ = source.partition("|")
    if not bar:
        raise ValueError(
            "`source` must be a locale, `|` and a date, such as "
            f"'en_US|3/4/26'. Received: source={source!r}."
        )
    return _language_name(check_choice("locale", locale, LOCALES))


@lru_cache(maxsize=len(LOCALES))
def _language_name(locale: str) -> str:
    language = Locale.parse("en").languages[Locale.parse(locale).language]
    return f"{language} ({locale})"


@lru_cache(maxsize=1)
def _calendar() -> dict[str, np.ndarray]:
    """Every day of the window: its parts as indices, ISO form and split."""
    first = datetime.date(FIRST_YEAR, 1, 1).toordinal()
    last = datetime.date(LAST_YEAR, 12, 31).toordinal()
    days = [
        datetime.date.fromordinal(number) for number in range(first, last + 1)
    ]
    iso = [day.isoformat() for day in days]
    return {
        "year": np.array([day.year - FIRST_YEAR for day in days]),
        "month": np.array([day.month - 1 for day in days]),
        "day": np.array([day.day - 1 for day in days]),
        "weekday": np.array([day.weekday() for day in days]),
        "iso": np.array(iso, dtype=object),
        "split": np.array([_split_of(text) for text in iso]),
    }


def _split_of(iso: str) -> str:
    """Assign a day to a split by its ISO form alone."""
    share = zlib.crc32(iso.encode()) % 100
    if share < 2:
        return "test"
    return "validation" if share < 4 else "train"


@lru_cache(maxsize=len(LOCALES))
def _writers(locale: str) -> dict[str, _Writer]:
    """Compile each pattern of a locale once, sorted by pattern."""
    data = Locale.parse(locale)
    found = {data.date_formats[name].pattern for name in _STANDARD_FORMATS} | {
        pattern.pattern
        for skeleton, pattern in data.datetime_skeletons.items()
        if "G" not in skeleton
    }
    typeable = sorted({pattern.translate(_TYPEABLE) for pattern in found})
    writers = {pattern: _compile(pattern, data) for pattern in typeable}
    return {name: writer for name, writer in writers.items() if writer}


def _compile(pattern: str, locale: Locale) -> _Writer | None:
    """Prepare a pattern; `None` if it does not name exactly one day."""
    template = parse_pattern(pattern).format
    parts = [_part(field, locale) for field in _FIELD.findall(template)]
    columns = [column for column, _ in parts]
    dated = [column for column in columns if column != "weekday"]
    if sorted(dated) != ["day", "month", "year"]:
        return None
    month_texts = parts[columns.index("month")][1]
    if len(set(month_texts)) < len(month_texts):
        return None
    return _Writer(
        f"{locale.language}_{locale.territory}|{_FIELD.sub('%s', template)}",
        tuple(columns),
        tuple(np.array(texts, dtype=object) for _, texts in parts),
    )


def _part(field: str, locale: Locale) -> tuple[str, list[str]]:
    """Give a field's column of the calendar and its text for each index."""
    letter, width = field[0], len(field)
    column, numbers = {
        "y": ("year", range(FIRST_YEAR, LAST_YEAR + 1)),
        "M": ("month", range(1, 13)),
        "L": ("month", range(1, 13)),
        "d": ("day", range(1, 32)),
        "E": ("weekday", range(7)),
        "c": ("weekday", range(7)),
    }.get(letter, ("unknown", range(0)))
    if letter == "E":
        width = max(width, 3)
    if letter in _CONTEXTS and width in _NAME_WIDTHS:
        names_of = get_month_names if column == "month" else get_day_names
        names = names_of(_NAME_WIDTHS[width], _CONTEXTS[letter], locale)
        return column, [names[i].translate(_TYPEABLE) for i in numbers]
    if column == "weekday" or (width > 2 and letter != "y"):
        return "unknown", []
    texts = [f"{number:0{width}d}" for number in numbers]
    return column, [text[-2:] for text in texts] if width == 2 else texts


def _write(writer: _Writer, days: np.ndarray) -> list[str]:
    """Fill the template for each index into the calendar."""
    calendar = _calendar()
    texts = [
        table[calendar[column][days]].tolist()
        for column, table in zip(writer.columns, writer.tables, strict=True)
    ]
    return [writer.template % row for row in zip(*texts, strict=True)]

"""The dates task: Babel's own formatter is the reference."""

import datetime
import itertools
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from babel import Locale
from babel.dates import format_date
from babel.dates import format_skeleton

from keras_tfm.data import dates
from keras_tfm.data.dates import LOCALES
from keras_tfm.data.dates import date_pairs
from keras_tfm.data.dates import date_patterns
from keras_tfm.data.dates import language_of
from keras_tfm.data.dates import write_date
from keras_tfm.data.sentence_pairs import SentencePairs

SPLITS = ("train", "validation", "test")
FIRST_DAY = datetime.date(1969, 1, 1)
LAST_DAY = datetime.date(2068, 12, 31)
DAY = datetime.date(2026, 3, 4)


def as_typed(text):
    """Write spaces as a keyboard does and drop marks of direction."""
    text = re.sub("[\u00a0\u2009\u202f]", " ", text)
    return re.sub("[\u061c\u200e\u200f]", "", text)


def some_days(count):
    """The edges of the window, a leap day, and random days between."""
    span = (LAST_DAY - FIRST_DAY).days
    offsets = np.random.default_rng(11).integers(1, span, count).tolist()
    return [
        FIRST_DAY,
        LAST_DAY,
        datetime.date(1999, 12, 31),
        datetime.date(2000, 2, 29),
        *(FIRST_DAY + datetime.timedelta(offset) for offset in offsets),
    ]


def parent_folders():
    """The packages above the module, each with its folder."""
    folder = pathlib.Path(dates.__file__).parent
    return [("keras_tfm", str(folder.parent)), ("keras_tfm.data", str(folder))]


def written_by_babel(day, locale):
    """All texts of a whole day by Babel, without eras and 3-digit days."""
    texts = {
        format_date(day, name, locale)
        for name in ("full", "long", "medium", "short")
    }
    for skeleton in Locale.parse(locale).datetime_skeletons:
        if re.fullmatch("y+[ML]+[Ec]*d{1,2}", skeleton):
            texts.add(format_skeleton(skeleton, day, locale=locale))
    return {f"{locale}|{as_typed(text)}" for text in texts}


def test_there_are_at_least_forty_locales_each_once():
    assert 40 <= len(set(LOCALES)) == len(LOCALES)


def test_every_locale_writes_dates_in_several_ways():
    for locale in LOCALES:
        patterns = date_patterns(locale)
        assert len(patterns) >= 4, locale
        assert list(patterns) == sorted(set(patterns)), locale


@pytest.mark.parametrize("locale", LOCALES)
def test_writes_exactly_the_texts_that_babel_writes(locale):
    for day in some_days(20):
        ours = {
            write_date(day, locale, pattern)
            for pattern in date_patterns(locale)
        }
        assert ours == written_by_babel(day, locale)


def test_each_pattern_matches_babel_on_that_pattern():
    for locale in LOCALES:
        for pattern in date_patterns(locale):
            for day in some_days(3):
                expected = as_typed(format_date(day, pattern, locale))
                assert write_date(day, locale, pattern) == (
                    f"{locale}|{expected}"
                )


def test_drawn_pairs_match_babel():
    pairs = date_pairs(300, seed=5)
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        day = datetime.date.fromisoformat(target)
        assert source in written_by_babel(day, source.partition("|")[0])


@pytest.mark.parametrize(
    ("locale", "pattern", "text"),
    [
        ("en_US", "M/d/yy", "3/4/26"),
        ("de_DE", "d. MMMM y", "4. März 2026"),
        ("fi_FI", "cccc d. MMMM y", "keskiviikko 4. maaliskuuta 2026"),
        ("zh_CN", "y年M月d日EEEE", "2026年3月4日星期三"),
        ("el_GR", "d MMMM y", "4 Μαρτίου 2026"),
        ("ar_AE", "d/M/y", "4/3/2026"),
    ],
)
def test_known_dates(locale, pattern, text):
    assert write_date(DAY, locale, pattern) == f"{locale}|{text}"


def test_no_text_names_two_days():
    # Closed under swapping day, month and year, and 1 beside 11 shows whether
    # digits can run together. Then all months, and all years.
    numbers = (1, 2, 5, 7, 11, 12)
    days = {
        datetime.date(2000 + year, month, day)
        for year, month, day in itertools.product(numbers, repeat=3)
    }
    days |= {datetime.date(2001, month, 15) for month in range(1, 13)}
    days |= {datetime.date(year, 3, 4) for year in range(1969, 2069)}
    for locale in LOCALES:
        seen = {}
        for pattern in date_patterns(locale):
            for day in days:
                text = write_date(day, locale, pattern)
                assert seen.setdefault(text, day) == day, (pattern, text)


def test_no_drawn_text_has_two_answers():
    answers = {}
    for split in SPLITS:
        pairs = date_pairs(60_000, seed=2, split=split)
        for source, target in zip(pairs.sources, pairs.targets, strict=True):
            assert answers.setdefault(source, target) == target, source


def test_a_two_digit_year_names_each_year_of_the_window_once():
    texts = {}
    for year in range(1969, 2069):
        source = write_date(datetime.date(year, 3, 4), "en_US", "M/d/yy")
        texts[source.removeprefix("en_US|3/4/")] = year
    assert len(texts) == 100
    assert texts["69"] == 1969
    assert texts["99"] == 1999
    assert texts["00"] == 2000
    assert texts["68"] == 2068


def test_texts_hold_only_what_a_keyboard_types():
    sources = date_pairs(20_000, seed=3).sources
    characters = set("".join(sources))
    assert not characters & set("\u00a0\u2009\u202f\u061c\u200e\u200f\n\t")
    assert all(c == " " or c.isprintable() for c in characters)


def test_texts_are_short_enough_for_a_small_model():
    assert max(map(len, date_pairs(20_000, seed=4).sources)) <= 48


def test_targets_are_iso_dates_of_the_window():
    for split in SPLITS:
        for target in date_pairs(2_000, seed=6, split=split).targets:
            day = datetime.date.fromisoformat(target)
            assert day.isoformat() == target
            assert FIRST_DAY <= day <= LAST_DAY


def test_no_day_is_in_two_splits():
    train, validation, test = (
        set(date_pairs(100_000, seed=7, split=split).targets)
        for split in SPLITS
    )
    assert not train & validation
    assert not train & test
    assert not validation & test
    total = (LAST_DAY - FIRST_DAY).days + 1
    assert len(train) > 0.85 * total
    assert 0.015 * total < len(validation) < 0.025 * total
    assert 0.015 * total < len(test) < 0.025 * total


def test_the_split_of_a_day_does_not_depend_on_the_seed():
    one = set(date_pairs(30_000, seed=8, split="test").targets)
    other = set(date_pairs(30_000, seed=9, split="test").targets)
    assert one == other


def test_the_same_seed_draws_the_same_pairs():
    pairs = date_pairs(500, seed=10, split="validation")
    assert pairs == date_pairs(500, seed=10, split="validation")
    assert pairs.sources != date_pairs(500, 11, "validation").sources


def test_splits_do_not_draw_the_same_locales_in_step():
    train, test = (
        [source[:5] for source in date_pairs(500, 12, split).sources]
        for split in ("train", "test")
    )
    assert train != test


def test_pairs_carry_their_number_and_a_name():
    pairs = date_pairs(7, seed=13, split="test")
    assert isinstance(pairs, SentencePairs)
    assert len(pairs.sources) == len(pairs.targets) == 7
    assert pairs.name == "dates_test"


def test_locales_and_patterns_are_drawn_evenly():
    count = 84_000
    sources = date_pairs(count, seed=14).sources
    found, numbers = np.unique(
        [source[:5] for source in sources], return_counts=True
    )
    assert set(found) == set(LOCALES)
    # Five standard deviations of a binomial count.
    expected = count / len(LOCALES)
    assert np.all(np.abs(numbers - expected) < 5 * np.sqrt(expected))
    swedish = [s for s in sources if s.startswith("sv_SE|")]
    numeric = sum(
        re.fullmatch(r"sv_SE\|[\d-]+", s) is not None for s in swedish
    )
    share = 1 / len(date_patterns("sv_SE"))
    assert abs(numeric / len(swedish) - share) < 0.05


def test_a_hundred_thousand_pairs_take_less_than_five_seconds():
    start = time.perf_counter()
    date_pairs(100_000, seed=15)
    assert time.perf_counter() - start < 5


def test_needs_no_tensorflow():
    # Bare parent packages: what they import is not this module's doing.
    code = f"""
import sys, types
for name, folder in {parent_folders()!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from keras_tfm.data.dates import date_pairs
date_pairs(5, seed=1)
sys.exit("tensorflow" in sys.modules or "keras" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_the_language_of_a_text():
    assert language_of("fi_FI|4. maaliskuuta 2026") == "Finnish (fi_FI)"
    assert language_of("zh_TW|2026/3/4") == "Chinese (zh_TW)"
    names = {language_of(f"{locale}|x") for locale in LOCALES}
    assert len(names) == len(LOCALES)


def test_an_unknown_locale_gets_the_nearest_suggestion():
    for call in (
        lambda: date_patterns("fi_FL"),
        lambda: write_date(DAY, "fi_FL", "d.M.y"),
        lambda: language_of("fi_FL|4.3.2026"),
    ):
        with pytest.raises(ValueError, match="Did you mean 'fi_FI'"):
            call()


def test_an_unknown_pattern_gets_the_nearest_suggestion():
    with pytest.raises(ValueError, match=r"Did you mean 'd\.M\.y'"):
        write_date(DAY, "fi_FI", "d.M.yy")


def test_an_unknown_split_gets_the_nearest_suggestion():
    with pytest.raises(ValueError, match="Did you mean 'validation'"):
        date_pairs(5, seed=1, split="valid")


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_rejects_a_bad_count(count):
    with pytest.raises(ValueError, match=f"Received: count={count}"):
        date_pairs(count, seed=1)


def test_rejects_a_negative_seed():
    with pytest.raises(ValueError, match="Received: seed=-1"):
        date_pairs(5, seed=-1)


@pytest.mark.parametrize("year", [1968, 2069])
def test_rejects_a_year_that_two_digits_would_confuse(year):
    message = f"from 1969 to 2068.*Received: date={year}-01-02"
    with pytest.raises(ValueError, match=message):
        write_date(datetime.date(year, 1, 2), "en_US", "M/d/yy")


def test_rejects_a_date_that_is_text():
    with pytest.raises(TypeError, match="Received: date='2026-03-04'"):
        write_date("2026-03-04", "en_US", "M/d/yy")


def test_rejects_a_text_without_a_locale():
    with pytest.raises(ValueError, match="Received: source='3/4/26'"):
        language_of("3/4/26")

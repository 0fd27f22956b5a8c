"""PairMerger against one merge at a time, on vocabularies made to be hard."""

import itertools

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.text.pair_merger import PairMerger

END = 499


def one_by_one(text, pieces):
    """Merge the lowest id first, the leftmost of equals."""
    parts = list(text)
    while True:
        ids = [
            pieces.get(left + right, END)
            for left, right in itertools.pairwise(parts)
        ]
        if not ids or min(ids) == END:
            return [pieces[part] for part in parts]
        place = ids.index(min(ids))
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


def merge(texts, pieces):
    symbols = []
    for text in texts:
        symbols += [*(pieces[letter] for letter in text), END]
    rows = [[]]
    merger = PairMerger(pieces, END)
    for symbol in merger(tf.constant(symbols, tf.int32)).numpy().tolist():
        if symbol == END:
            rows.append([])
        else:
            rows[-1].append(symbol)
    return rows[:-1]


# Any ids in any order: later pieces may be part of earlier ones, which no
# training would give often.
@settings(max_examples=70)
@given(
    st.lists(st.text("abc", min_size=2, max_size=5), unique=True, max_size=23),
    st.lists(st.text("abc", max_size=29), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_merging_many_at_once_gives_what_one_by_one_gives(
    longer, texts, random
):
    pieces = [*longer, "a", "b", "c"]
    ids = random.sample(range(61), len(pieces))
    pieces = dict(zip(pieces, ids, strict=True))
    texts = [*texts, "a" * 23, "ab" * 11, "abc" * 7]
    assert merge(texts, pieces) == [one_by_one(text, pieces) for text in texts]


def test_the_lowest_id_is_merged_first_and_the_leftmost_of_equals():
    pieces = {"a": 7, "b": 8, "aa": 2, "ab": 1, "aab": 3}
    assert merge(["aab", "aaa", "aaab"], pieces) == [[3], [2, 7], [2, 1]]


def test_a_merge_may_make_a_pair_that_is_lower_than_itself():
    # "ab" has a higher id than "abc" and "cd": once it is there, "abc" comes
    # before "cd", though "cd" was lower than "ab".
    pieces = {"a": 11, "b": 12, "c": 13, "d": 14, "ab": 5, "abc": 1, "cd": 9}
    assert merge(["abcd"], pieces) == [one_by_one("abcd", pieces)] == [[1, 14]]


def test_texts_never_merge_with_each_other():
    pieces = {"a": 3, "b": 4, "ab": 1}
    assert merge(["a", "b", "", "ab"], pieces) == [[3], [4], [], [1]]


def test_without_pairs_all_symbols_stay():
    assert merge(["aba"], {"a": 0, "b": 1}) == [[0, 1, 0]]
    assert merge([], {"a": 0}) == []


def test_a_vocabulary_too_large_is_an_error():
    with pytest.raises(ValueError, match=r"1048575 pieces.*Received: 2000"):
        PairMerger({"a": 3}, 2_000_000)

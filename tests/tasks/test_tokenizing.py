"""Tokenizers of a task, and rows of ids."""

import numpy as np
import pytest

from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.tasks.tokenizing import check_lengths
from keras_tfm.tasks.tokenizing import end_rows
from keras_tfm.tasks.tokenizing import pad_rows
from keras_tfm.tasks.tokenizing import token_rows
from keras_tfm.tasks.tokenizing import train_tokenizer
from keras_tfm.tasks.tokenizing import train_tokenizers

PAIRS = SentencePairs(sources=["ab", "b"], targets=["xy", "yz"], name="letters")


def test_a_joint_tokenizer_knows_both_sides():
    source, target = train_tokenizers(PAIRS, "characters", 100, joint=True)
    assert source is target
    assert source.detokenize(source.tokenize(["abxyz"])).numpy() == [b"abxyz"]


def test_separate_tokenizers_know_their_own_side():
    source, target = train_tokenizers(PAIRS, "characters", 100, joint=False)
    assert source.vocabulary_size == 4 + 2
    assert target.vocabulary_size == 4 + 3


def test_rows_are_the_ids_of_each_text():
    tokenizer = train_tokenizer("characters", ["abc"])
    rows = token_rows(tokenizer, ["ab", "", "cab"])
    assert [len(row) for row in rows] == [2, 0, 3]
    assert rows[2].tolist() == [rows[2][0], *rows[0].tolist()]


def test_padding_by_hand():
    rows = [np.array([5, 6, 7]), np.array([], "int32"), np.array([8])]
    assert pad_rows(rows, 5, 4, pad_id=0).tolist() == [
        [5, 6, 7, 0],
        [0, 0, 0, 0],
        [8, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize(
    ("empty", "expected"),
    [(False, [[5, 6, 2], [], [8, 2]]), (True, [[5, 6, 2], [2], [8, 2]])],
)
def test_an_empty_row_gets_an_end_only_where_it_is_wanted(empty, expected):
    rows = [np.array([5, 6]), np.array([], "int32"), np.array([8])]
    ended = end_rows(rows, end_id=2, empty=empty)
    assert [row.tolist() for row in ended] == expected


def test_names_the_text_that_is_too_long():
    rows = [np.array([5]), np.arange(7)]
    check_lengths(rows, limit=8)
    with pytest.raises(ValueError, match="Text 2 takes 8 tokens with its end"):
        check_lengths(rows, limit=7)
    with pytest.raises(ValueError, match="Target 2 takes 8 tokens"):
        check_lengths(rows, 7, "Target")


def test_names_an_unknown_kind():
    with pytest.raises(ValueError, match="Did you mean 'characters'"):
        train_tokenizer("character", ["a"])

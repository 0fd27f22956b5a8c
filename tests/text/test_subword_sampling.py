"""SubwordSampler: how often merges are left out, and always the same ones."""

import concurrent.futures
import functools
import io
import itertools
import json
import threading
from collections import Counter

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from keras_tfm.text.byte_pair_tokenizer import BytePairTokenizer
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.subword_sampling import SubwordSampler

TEXTS = [
    f"{who} {did} {what} {n}。我们看见{n}只{animal}！"  # noqa: RUF001
    for n in range(3)
    for who in ("The cat", "A dog", "Ein Mädchen")
    for did in ("saw", "hörte")
    for what in ("the ball", "two trees", "einen Vogel")
    for animal in ("猫", "狗")
]
ODD_TEXTS = [
    "",
    " ",
    "the  two  trees ",
    "我们看见猫和🐈、👩‍👩‍👧‍👦",
    "nul\x00byte",
    "<s> </s> ▁",
    "the ball " * 307,
]


@functools.cache
def trained():
    return SentencePieceTokenizer.train(TEXTS, 401)


@functools.cache
def one_merge():
    """Return a tokenizer whose one merge is `a` and `b`."""
    tokenizer = SentencePieceTokenizer.train(["xab yab zab"], 267)
    longer = [
        piece for piece in tokenizer.pieces(range(260, 267)) if len(piece) > 1
    ]
    assert longer == ["ab"]
    return tokenizer


def sampler(dropout=0.3, seed=5):
    return SubwordSampler(trained(), dropout, seed)


def as_lists(rows):
    return [row.tolist() for row in rows]


def read(rows):
    joined = trained().detokenize(tf.ragged.constant(as_lists(rows), tf.int32))
    return [text.decode() for text in joined.numpy()]


def test_without_dropout_the_rows_are_the_usual_ids():
    rows = sampler(dropout=0).rows([*TEXTS, *ODD_TEXTS], epoch=3)
    assert {row.dtype for row in rows} == {np.dtype(np.int32)}
    usual = trained().tokenize([*TEXTS, *ODD_TEXTS])
    assert as_lists(rows) == usual.to_list()


def test_more_dropout_means_more_pieces():
    sizes = [
        sum(map(len, sampler(dropout).rows(TEXTS, 0)))
        for dropout in (0, 0.1, 0.3, 0.7, 0.999999)
    ]
    assert sizes == sorted(set(sizes))
    # With next to no merges each character is a piece, and `▁` in front.
    assert sizes[-1] == sum(len(text) + 1 for text in read_usual(TEXTS))


def read_usual(texts):
    return read(sampler(dropout=0).rows(texts, 0))


def test_sampled_pieces_read_as_the_usual_text():
    rows = sampler().rows([*TEXTS, *ODD_TEXTS], 0)
    assert {row.dtype for row in rows} == {np.dtype(np.int32)}
    assert read(rows) == read_usual([*TEXTS, *ODD_TEXTS])


@settings(max_examples=41)
@given(st.lists(st.text(max_size=13), min_size=1, max_size=5), st.integers(0))
def test_any_text_reads_the_same_in_any_pieces(texts, epoch):
    assert read(sampler().rows(texts, epoch)) == read_usual(texts)


@pytest.mark.parametrize("dropout", [0.05, 0.3, 0.8])
def test_a_merge_is_left_out_at_the_given_rate(dropout):
    count = 5003
    rows = SubwordSampler(one_merge(), dropout, seed=1).rows(["xab"] * count, 0)
    kinds = Counter(map(len, rows))
    assert set(kinds) == {3, 4}
    deviation = (count * dropout * (1 - dropout)) ** 0.5
    assert abs(kinds[3] - count * (1 - dropout)) < 4 * deviation


def chi_square(found, shares):
    """Return how far counts are from their shares, in standard deviations."""
    count = sum(found.values())
    assert set(found) <= set(shares)
    assert sum(shares.values()) == pytest.approx(1)
    # What is too rare to be compared counts together.
    common = {key for key, share in shares.items() if share * count >= 7}
    bins = [(found[key], shares[key] * count) for key in common]
    rest = [count - sum(numbers) for numbers in zip(*bins, strict=True)]
    if rest[1] >= 7:
        bins.append(tuple(rest))
    total = sum((a - wanted) ** 2 / wanted for a, wanted in bins)
    freedom = len(bins) - 1
    return (total - freedom) / (2 * freedom) ** 0.5


def shares_of_the_paper(word, pieces, dropout):
    """Return the chance of each way to cut `word`, by going all ways there are.

    Algorithm 1 of the paper, with every draw replaced by its two outcomes.
    """

    @functools.cache
    def shares(parts):
        merges = sorted(
            (pieces.index(left + right), place)
            for place, (left, right) in enumerate(itertools.pairwise(parts))
            if left + right in pieces
        )
        result = Counter({parts: dropout ** len(merges)})
        for better, (_, place) in enumerate(merges):
            whole = parts[place] + parts[place + 1]
            after = (*parts[:place], whole, *parts[place + 2 :])
            for end, share in shares(after).items():
                result[end] += (1 - dropout) * dropout**better * share
        return result

    return shares(tuple(word))


@pytest.mark.parametrize("dropout", [0.1, 0.4])
@pytest.mark.parametrize("word", ["trees", "Mädchen", "einen", "我们看见"])
def test_a_word_is_cut_as_often_as_in_the_paper(word, dropout):
    pieces = trained().pieces(range(trained().vocabulary_size))
    rows = SubwordSampler(trained(), dropout, 3).rows([word] * 5003, 0)
    found = Counter(tuple(trained().pieces(row)) for row in rows)
    shares = shares_of_the_paper("▁" + word, pieces, dropout)
    assert len(shares) > 4
    assert chi_square(found, shares) < 4


def test_a_word_ends_where_no_piece_joins_two_characters():
    rows = SubwordSampler(one_merge(), 0.3, 2).rows(["xabyab"] * 5003, 0)
    ab, a = (row[-1] for row in one_merge().tokenize(["ab", "a"]).to_list())
    found = Counter(
        tuple(number == ab for number in row if number in (ab, a))
        for row in rows
    )
    shares = {
        (first, second): (0.7 if first else 0.3) * (0.7 if second else 0.3)
        for first in (True, False)
        for second in (True, False)
    }
    assert chi_square(found, shares) < 4


def test_the_same_epoch_gives_the_same_rows_whatever_comes_between():
    expected = as_lists(sampler().rows(TEXTS, 7))
    one = sampler()
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        sampler(seed=11).rows(TEXTS, 0)
        one.rows(TEXTS[::-1], 7)
        assert as_lists(one.rows(TEXTS, 7)) == expected
        assert as_lists(sampler().rows(TEXTS, 7)) == expected


def test_a_sampler_may_work_in_many_threads_at_once():
    one = sampler()
    epochs = range(5)
    expected = [as_lists(one.rows(TEXTS, epoch)) for epoch in epochs]
    start = threading.Barrier(len(epochs))

    def at_once(epoch):
        start.wait()
        return as_lists(one.rows(TEXTS, epoch))

    with concurrent.futures.ThreadPoolExecutor(len(epochs)) as executor:
        assert list(executor.map(at_once, epochs)) == expected


def test_another_process_gives_the_same_rows(tmp_path, fresh_process):
    trained().save(tmp_path)
    snippet = """
        import json
        import sys

        from keras_tfm.text.sentencepiece_tokenizer import (
            SentencePieceTokenizer,
        )
        from keras_tfm.text.subword_sampling import SubwordSampler

        tokenizer = SentencePieceTokenizer.load(sys.argv[1])
        sampler = SubwordSampler(tokenizer, 0.3, 5)
        rows = sampler.rows(json.loads(sys.argv[2]), 7)
        print(json.dumps([row.tolist() for row in rows]))
    """
    output = fresh_process(snippet, tmp_path, json.dumps(TEXTS))
    assert json.loads(output) == as_lists(sampler().rows(TEXTS, 7))


def test_each_epoch_and_each_seed_has_rows_of_its_own():
    drawn = {
        json.dumps(as_lists(sampler(seed=seed).rows(TEXTS, epoch)))
        for seed in (0, 1, 2, 2**32, 2**70 + 1)
        for epoch in (0, 1, 2, 2**32)
    }
    assert len(drawn) == 20


def test_equal_texts_of_one_epoch_are_cut_in_many_ways():
    rows = sampler().rows([TEXTS[0]] * 53, 0)
    assert len(set(map(tuple, as_lists(rows)))) > 40


def test_many_texts_are_sampled_like_few():
    texts = [TEXTS[number % 7] + " " * (number % 3) for number in range(8209)]
    texts[4095:4098] = ["", "", "猫"]
    rows = sampler().rows(texts, 0)
    assert read(rows) == read_usual(texts)
    first, second = (sum(map(len, rows[i : i + 4004])) for i in (0, 4098))
    assert first == pytest.approx(second, rel=0.02)


def test_a_long_text_of_one_word_is_finished():
    (row,) = SubwordSampler(one_merge(), 0.1).rows(["ab" * 3001], 0)
    assert 3100 < len(row) < 4200


def test_a_byte_pair_tokenizer_is_sampled_like_its_model():
    same = BytePairTokenizer.from_sentencepiece(trained())
    for dropout in (0, 0.3):
        rows = SubwordSampler(same, dropout, seed=5).rows(TEXTS, 7)
        assert as_lists(rows) == as_lists(sampler(dropout).rows(TEXTS, 7))


def test_the_order_of_merges_is_that_of_the_scores_and_not_of_the_ids():
    model = sentencepiece_model_pb2.ModelProto.FromString(trained().model_proto)
    turned = [*model.pieces[:260], *model.pieces[:259:-1]]
    del model.pieces[:]
    model.pieces.extend(turned)
    other = SentencePieceTokenizer(model.SerializeToString())
    found = SubwordSampler(other, 0.3, seed=5).rows(TEXTS, 7)
    expected = sampler().rows(TEXTS, 7)
    assert [other.pieces(row) for row in found] == [
        trained().pieces(row) for row in expected
    ]


def test_no_merge_joins_two_texts():
    model = sentencepiece_model_pb2.ModelProto.FromString(
        one_merge().model_proto
    )
    model.normalizer_spec.add_dummy_prefix = False
    tokenizer = SentencePieceTokenizer(model.SerializeToString())
    texts = ["xa", "", "b", "ab", "a", "b"]
    rows = SubwordSampler(tokenizer, 1e-9).rows(texts, 0)
    assert as_lists(rows) == tokenizer.tokenize(texts).to_list()
    rows = SubwordSampler(tokenizer, 0.999999).rows(texts, 0)
    assert ["".join(tokenizer.pieces(row)) for row in rows] == texts


@pytest.mark.parametrize("dropout", [0, 0.3])
def test_no_texts_tensors_and_broken_texts_are_texts_too(dropout):
    one = sampler(dropout)
    assert one.rows([], 0) == []
    (empty,) = one.rows([""], 0)
    assert empty.shape == (0,)
    assert empty.dtype == np.int32
    expected = as_lists(one.rows(TEXTS, 0))
    assert as_lists(one.rows(tf.constant(TEXTS), 0)) == expected
    broken = [b"a\xff\xfeb", b"\xf0\x9f\x90", "a\ud800b"]
    usual = trained().detokenize(trained().tokenize(broken)).numpy().tolist()
    rows = as_lists(one.rows(broken, 0))
    joined = trained().detokenize(tf.ragged.constant(rows, tf.int32))
    assert joined.numpy().tolist() == usual


def test_a_tokenizer_without_merges_is_refused():
    with pytest.raises(TypeError, match=r"merges to leave out.*CharacterTok"):
        SubwordSampler(CharacterTokenizer("abc"), 0.1)
    with pytest.raises(TypeError, match="Received: None of type NoneType"):
        SubwordSampler(None, 0.1)


def test_a_unigram_model_is_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        model_type="unigram",
        vocab_size=71,
        hard_vocab_limit=False,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    tokenizer = SentencePieceTokenizer(model.getvalue())
    with pytest.raises(ValueError, match=r"byte-pair.*Received: model type 1"):
        SubwordSampler(tokenizer, 0.1)


@pytest.mark.parametrize("dropout", [-0.1, 1, 1.5, "0.1", float("nan")])
def test_a_dropout_that_is_no_share_is_refused(dropout):
    with pytest.raises(ValueError, match=r"`dropout` must be a number in"):
        SubwordSampler(trained(), dropout)


def test_a_seed_or_an_epoch_below_zero_is_refused():
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        SubwordSampler(trained(), 0.1, seed=-1)
    with pytest.raises(ValueError, match=r"`epoch` must be .*epoch=-1"):
        sampler().rows(TEXTS, -1)


def test_one_string_is_refused():
    with pytest.raises(ValueError, match=r"Write \[texts\]"):
        sampler().rows("the cat", 0)

"""Strings in, strings out: chunks, buckets, and an empty batch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.export.text_to_text import TextToText
from keras_tfm.text.character_tokenizer import CharacterTokenizer

TARGET_LENGTH = 5


def first(ids):
    return tf.ensure_shape(ids[:, :TARGET_LENGTH], (None, TARGET_LENGTH))


@pytest.fixture
def tokenizer():
    return CharacterTokenizer.train(["abcdefg"])


@pytest.fixture
def shapes():
    return []


@pytest.fixture
def module(tokenizer, shapes):
    factor = tf.Variable(1)

    def copy(ids):
        """Copy the first characters and score a row by its first one."""
        tf.py_function(lambda x: shapes.append(tuple(x.shape)), [ids], Tout=[])
        # The end mark is not copied, as a decoder would stop there.
        kept = first(tf.where(ids == 2, 0, ids))
        return kept * factor, tf.cast(ids[:, 0], tf.float32)

    def copy_twice(ids):
        best, scores = copy(ids)
        return tf.stack([best, best], 1), tf.stack([scores, -scores], 1)

    def compare(ids, others):
        return tf.cast(tf.reduce_sum(ids * factor, 1) - others[:, 0], "float32")

    def lengths(ids):
        real = tf.reduce_sum(tf.cast(ids != 0, tf.float32), 1)
        return tf.stack([real, real], 1)

    return TextToText(
        tokenizer,
        tokenizer,
        {
            "translate": copy,
            "translate_nbest": copy_twice,
            "score": compare,
            "encode": lengths,
        },
        [factor],
        lengths=(5, 11),
        batch_sizes=(1, 3),
        jit_compile=False,
    )


def texts_of(module, texts):
    output = module.translate(tf.constant(texts, tf.string))
    return [text.decode() for text in output["text"].numpy()]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_a_batch_of_any_size_comes_back_in_order(module, count):
    texts = ["abc", "d", "gfe", "ab", "ba", "c", "fa"][:count]
    assert texts_of(module, texts) == texts


def test_an_empty_batch_gives_an_empty_batch(module):
    output = module.translate(tf.constant([], tf.string))
    assert output["text"].shape == (0,)
    assert output["score"].shape == (0,)


def test_only_the_listed_shapes_are_decoded(module, shapes):
    for texts in (["a"], ["abcd"], ["abcde"], ["a"] * 2, ["abcdefg"] * 8):
        module.translate(tf.constant(texts))
    assert set(shapes) <= {(1, 5), (1, 11), (3, 5), (3, 11)}
    assert (3, 11) in shapes
    assert (1, 5) in shapes


def test_a_long_text_is_cut_and_an_empty_one_has_no_end_mark(module):
    output = module.translate(tf.constant(["ab" * 5000, ""]))
    assert output["text"].numpy().tolist() == [b"ababa", b""]
    # The first id of a row of padding is 0.
    assert output["score"].numpy()[1] == 0


def test_bytes_that_are_not_text_do_not_crash(module):
    output = module.translate(tf.constant([b"\xff\xfe", "😀".encode(), b"ab"]))
    assert output["text"].numpy()[2] == b"ab"


def test_the_best_come_as_rows_of_texts(module):
    output = module.translate_nbest(tf.constant(["abc", "", "fe", "d"]))
    assert output["text"].numpy().tolist() == [
        [b"abc"] * 2,
        [b""] * 2,
        [b"fe"] * 2,
        [b"d"] * 2,
    ]
    assert output["score"].shape == (4, 2)
    empty = module.translate_nbest(tf.constant([], tf.string))
    assert empty["text"].shape == (0, 2)


def test_a_score_takes_both_texts_and_counts_the_target(module, tokenizer):
    output = module.score(tf.constant(["a", ""]), tf.constant(["b", ""]))
    first, second = (tokenizer_id(tokenizer, letter) for letter in "ab")
    # The end counts in both; an empty source has none, an empty target one.
    assert output["score"].numpy().tolist() == [first + 2 - second, 0 - 2]
    assert output["tokens"].numpy().tolist() == [2, 1]


def test_texts_that_are_not_as_many_are_an_error(module):
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many texts"):
        module.score(tf.constant(["a"]), tf.constant(["a", "b"]))


def test_an_encoding_has_a_row_for_each_text(module):
    output = module.encode(tf.constant(["abc", "", "fe", "d"]))
    assert output["vector"].numpy()[:, 0].tolist() == [4, 0, 3, 2]


def test_the_warmup_runs_every_program_once(module, shapes):
    output = module.warmup()
    assert int(output["programs"]) == 4 * 4
    # `translate` and `translate_nbest` both report here.
    assert sorted(shapes) == sorted([(1, 5), (1, 11), (3, 5), (3, 11)] * 2)


def test_the_saved_module_answers_by_its_signatures(tmp_path, tokenizer):
    def double(ids):
        return first(ids), tf.cast(ids[:, 0], tf.float32)

    plain = TextToText(
        tokenizer, tokenizer, {"translate": double}, [], (5,), (1, 3)
    )
    tf.saved_model.save(plain, str(tmp_path), signatures=plain.signatures())
    loaded = tf.saved_model.load(str(tmp_path))
    assert sorted(loaded.signatures) == [
        "serving_default",
        "translate",
        "warmup",
    ]
    output = loaded.signatures["serving_default"](text=tf.constant(["abc"]))
    assert sorted(output) == ["score", "text"]
    assert output["text"].numpy().tolist() == [b"abc"]
    np.testing.assert_allclose(output["score"], [tokenizer_id(tokenizer, "a")])
    # Ids to ids, for those who have them.
    ids = tf.constant([[5, 2, 0, 0, 0]])
    assert loaded.id_functions["translate"](ids)[0].shape == (1, 5)


def tokenizer_id(tokenizer, character):
    return tokenizer.tokenize([character]).to_list()[0][0]

"""Strings in, strings out: chunks, buckets, and an empty batch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.export.text_to_text import TextToText
from keras_tfm.text.character_tokenizer import CharacterTokenizer

TARGET_LENGTH = 5


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
        kept = tf.where(ids[:, :TARGET_LENGTH] == 2, 0, ids[:, :TARGET_LENGTH])
        return kept * factor, tf.cast(ids[:, 0], tf.float32)

    return TextToText(
        tokenizer,
        tokenizer,
        copy,
        [factor],
        TARGET_LENGTH,
        source_lengths=(5, 11),
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


def test_the_saved_module_holds_the_variable_once_and_answers(
    module, tmp_path, tokenizer
):
    def double(ids):
        return ids[:, :TARGET_LENGTH], tf.cast(ids[:, 0], tf.float32)

    plain = TextToText(
        tokenizer, tokenizer, double, [], TARGET_LENGTH, (5,), (1, 3)
    )
    tf.saved_model.save(
        plain, str(tmp_path), signatures={"serving_default": plain.translate}
    )
    loaded = tf.saved_model.load(str(tmp_path))
    output = loaded.signatures["serving_default"](text=tf.constant(["abc"]))
    assert sorted(output) == ["score", "text"]
    assert output["text"].numpy().tolist() == [b"abc"]
    np.testing.assert_allclose(output["score"], [tokenizer_id(tokenizer, "a")])


def tokenizer_id(tokenizer, character):
    return tokenizer.tokenize([character]).to_list()[0][0]

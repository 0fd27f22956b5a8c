"""The checks that every tokenizer shares."""

import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.text.tokenizer import Tokenizer
from keras_tfm.text.tokenizer import as_dense_ids
from keras_tfm.text.tokenizer import as_string_tensor


def test_the_special_ids_are_the_agreed_ones():
    ids = (Tokenizer.pad_id, Tokenizer.start_id)
    ids += (Tokenizer.end_id, Tokenizer.unknown_id)
    assert ids == (0, 1, 2, 3)


def test_a_tokenizer_without_its_methods_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Tokenizer()


def test_one_string_in_place_of_a_list_is_an_error():
    with pytest.raises(ValueError, match=r"Received one string.*\[texts\]"):
        as_string_tensor("abc")


def test_a_matrix_of_texts_is_an_error():
    with pytest.raises(ValueError, match=r"rank 1.*\(1, 2\)"):
        as_string_tensor(tf.constant([["a", "b"]]))


def test_a_number_among_the_texts_is_named():
    with pytest.raises(TypeError, match="Received: 7 of type int"):
        as_string_tensor(["a", 7])


def test_a_lone_surrogate_becomes_bytes():
    assert as_string_tensor(["a\ud800"]).numpy().tolist() == [b"a\xed\xa0\x80"]


@pytest.mark.parametrize(
    "ids",
    [
        [[4, 5], [99]],
        tf.ragged.constant([[4, 5], [99]]),
        np.array([[4, 5], [99, 0]]),
        tf.constant([[4, 5], [2**32 + 4, 0]], tf.int64),
    ],
)
def test_ids_of_every_kind_become_dense_and_known(ids):
    dense = as_dense_ids(ids, vocabulary_size=6)
    assert dense.dtype == tf.int32
    assert dense.numpy().tolist() == [[4, 5], [3, 0]]


def test_ids_of_one_row_alone_are_an_error():
    with pytest.raises(ValueError, match=r"rank 2.*\(2,\)"):
        as_dense_ids(tf.constant([4, 5]), vocabulary_size=6)

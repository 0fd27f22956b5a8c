"""The UTF-8 of core ops against Python's own."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_tfm.text.utf8 import REPLACEMENT
from keras_tfm.text.utf8 import TEXT_END
from keras_tfm.text.utf8 import TEXT_START
from keras_tfm.text.utf8 import byte_stream
from keras_tfm.text.utf8 import character_lengths
from keras_tfm.text.utf8 import code_points
from keras_tfm.text.utf8 import encoded

ALL_CODES = np.array([*range(0xD800), *range(0xE000, 0x110000)], np.int32)


def decode(texts):
    """Return the code points and markers of all texts."""
    stream = byte_stream(tf.constant(texts, tf.string))
    lengths, is_start = character_lengths(stream)
    return code_points(stream, lengths)[is_start].numpy().tolist()


def one_byte_at_a_time(text):
    """Read valid characters; each other byte is a replacement."""
    codes = []
    while text:
        for size in (1, 2, 3, 4):
            try:
                codes.append(ord(text[:size].decode()))
                break
            except (UnicodeDecodeError, TypeError):
                pass
        else:
            codes.append(REPLACEMENT)
            size = 1
        text = text[size:]
    return codes


def test_every_code_point_is_read_and_written_as_python_does():
    content = "".join(map(chr, ALL_CODES)).encode()
    codes = decode([content])
    assert codes == [TEXT_START, *ALL_CODES.tolist(), TEXT_END]
    bytes_, lengths = (x.numpy() for x in encoded(tf.constant(ALL_CODES)))
    used = np.arange(4) < lengths[:, np.newaxis]
    assert bytes_[used].astype(np.uint8).tobytes() == content


BYTES = st.lists(
    st.one_of(
        st.binary(max_size=3),
        st.text(max_size=3).map(str.encode),
        st.sampled_from(
            [
                b"\xc1\x81",
                b"\xe0\x9f\xbf",
                b"\xed\xa0\x80",
                b"\xef\xbf\xbd",
                b"\xf0\x8f\xbf\xbf",
                b"\xf4\x90\x80\x80",
                b"\xf5\x80\x80\x80",
                b"\xe7\x8c",
                b"\xf0\x9f\x90",
                b"\x00",
            ]
        ),
    ),
    max_size=5,
).map(b"".join)


@given(st.lists(BYTES, max_size=3))
def test_each_broken_byte_is_a_replacement_of_its_own(texts):
    expected = []
    for text in texts:
        expected += [TEXT_START, *one_byte_at_a_time(text), TEXT_END]
    assert decode(texts) == expected


def test_a_character_never_continues_in_the_next_text():
    assert decode([b"\xe7\x8c", b"\xab"]) == [
        TEXT_START,
        REPLACEMENT,
        REPLACEMENT,
        TEXT_END,
        TEXT_START,
        REPLACEMENT,
        TEXT_END,
    ]

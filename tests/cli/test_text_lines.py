"""Lines come as they arrive, whatever the blocks they arrive in."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_tfm.cli.text_lines import line_chunks
from keras_tfm.data.text_files import DataError


class Blocks:
    """A stream that gives the blocks it was made of."""

    def __init__(self, *blocks):
        self.blocks = list(blocks)

    def read1(self, size=-1):
        return self.blocks.pop(0) if self.blocks else b""


def lines_of(stream, **kwargs):
    return [
        line
        for chunk in line_chunks(stream, "text", **kwargs)
        for line in chunk
    ]


def test_whole_lines_are_given_before_the_next_block_is_read():
    stream = Blocks(b"one\ntwo\nth", b"ree\n", b"four")
    chunks = line_chunks(stream, "text")
    assert next(chunks) == ["one", "two"]
    assert len(stream.blocks) == 2
    assert list(chunks) == [["three"], ["four"]]


def test_windows_ends_and_a_byte_order_mark_are_left_out():
    assert lines_of(io.BytesIO(b"\xef\xbb\xbfa\r\n\r\nb\r")) == ["a", "", "b"]
    assert lines_of(Blocks(b"\xef\xbb\xbf", b"a\n")) == ["a"]


def test_only_line_feeds_separate_lines():
    text = "a\u2028b\x0bc\x85d"
    assert lines_of(io.BytesIO(text.encode())) == [text]


def test_no_text_gives_no_line():
    assert lines_of(io.BytesIO(b"")) == []


def test_large_blocks_are_cut():
    chunks = list(line_chunks(io.BytesIO(b"x\n" * 5), "text", most=2))
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]


def test_the_lines_before_a_broken_one_are_given():
    chunks = line_chunks(io.BytesIO(b"a\nb\nc\xc3\nd\n"), "mine.txt", most=2)
    assert next(chunks) == ["a", "b"]
    with pytest.raises(DataError, match=r"mine\.txt, line 3, byte 2: 0xC3 is"):
        next(chunks)


@given(
    st.lists(
        st.text(
            st.characters(
                exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]
            )
        )
    ),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_blocks_change_nothing(lines, size, most):
    content = "".join(f"{line}\n" for line in lines).encode()
    blocks = [content[i : i + size] for i in range(0, len(content), size)]
    if size >= 3:  # Else a byte-order mark, which is none, could be cut.
        assert lines_of(Blocks(*blocks), most=most) == lines

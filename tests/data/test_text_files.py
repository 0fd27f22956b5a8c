"""read_lines: what it reads, and what it says of a file that is wrong."""

import gzip

import pytest

from keras_tfm.data.text_files import DataError
from keras_tfm.data.text_files import read_lines


def written(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        ("猫\u2028狗\x0b\x85\nc".encode(), ["猫\u2028狗\x0b\x85", "c"]),
        (b" kept \n", [" kept "]),
    ],
)
def test_only_line_feeds_separate_lines(tmp_path, content, lines):
    assert read_lines(written(tmp_path / "a.txt", content)) == lines
    packed = written(tmp_path / "a.txt.gz", gzip.compress(content))
    assert read_lines(str(packed)) == lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"a\.txt: the file is empty"),
        (b"\xef\xbb\xbf", r"a\.txt: the file is empty"),
        (b"one\n\nthree\n", r"a\.txt, line 2: the line is empty"),
        (b"one\ntwo\n \t\r\n", r"a\.txt, line 3: the line is empty"),
        (b"\n", r"a\.txt, line 1: the line is empty"),
        (
            b"one\nt\xc3\xa4\xffo\n",
            r"a\.txt, line 2, byte 4: 0xFF is not valid UTF-8",
        ),
        (b"\xe7\x8c", r"a\.txt, line 1, byte 1: 0xE7 is not valid UTF-8"),
    ],
)
def test_a_wrong_file_is_told_in_one_line_with_its_place(
    tmp_path, content, message
):
    with pytest.raises(DataError, match=message) as caught:
        read_lines(written(tmp_path / "a.txt", content))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"b\.txt: there is no such file"):
        read_lines(tmp_path / "b.txt")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="this is a folder"):
        read_lines(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"plain text",
        gzip.compress(b"some text to pack", mtime=0)[:-9],
        b"\x1f\x8b\x08\x00",
    ],
    # gzip writes down the time: two workers would name two tests.
    ids=["no gzip at all", "cut short", "a bare header"],
)
def test_a_file_that_cannot_be_unpacked_is_named(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.gz: the name ends in \.gz, but"):
        read_lines(written(tmp_path / "a.gz", content))

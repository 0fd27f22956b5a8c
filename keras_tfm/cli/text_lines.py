"""Lines of text from a stream, as soon as they are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from keras_tfm.data.text_files import DataError

_READ_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ByteStream(Protocol):
    """What is read from: standard input, a file, an unpacked file."""

    def read1(self, size: int = -1, /) -> bytes:
        """Return what is there, waiting only if that is nothing."""


def line_chunks(
    stream: ByteStream, name: str, most: int = 1024
) -> Iterator[list[str]]:
    r"""Yield the lines of a stream in chunks, without waiting for a full one.

    A line that was typed comes at once; of a large file many come together.

    Args:
        stream: Stream of bytes in UTF-8.
        name: String. What the stream is called, for messages.
        most: Positive integer. Lines of a chunk at most. Defaults to `1024`.

    Yields:
        List of lines without their ends, at least one.

    Raises:
        DataError: If a line is not UTF-8; the lines before it come first.

    Example:
        >>> import io
        >>> list(line_chunks(io.BytesIO(b"one\ntwo\n\nfour"), "text", 3))
        [['one', 'two', ''], ['four']]
    """
    number = 0
    for block in _line_blocks(stream):
        for start in range(0, len(block), most):
            lines: list[str] = []
            for line in block[start : start + most]:
                number += 1
                try:
                    lines.append(line.removesuffix(b"\r").decode("utf-8"))
                except UnicodeDecodeError as error:
                    if lines:
                        yield lines
                    raise DataError(
                        f"{name}, line {number}, byte {error.start + 1}: "
                        f"0x{line[error.start]:02X} is not valid UTF-8; "
                        "give text in UTF-8."
                    ) from error
            yield lines


def _line_blocks(stream: ByteStream) -> Iterator[list[bytes]]:
    rest = b""
    first = True
    while more := stream.read1(_READ_BYTES):
        if first:
            more, first = more.removeprefix(_BYTE_ORDER_MARK), False
        *lines, rest = (rest + more).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]

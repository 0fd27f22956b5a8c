"""Read the lines of a text file, or say which line of it is wrong."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class DataError(ValueError):
    """Say in one line what is wrong with the data, and where."""


def read_lines(path: str | Path) -> list[str]:
    """Read a UTF-8 text file, one text a line, and check every line.

    A file whose name ends in `.gz` is unpacked on the way. A byte-order mark
    and Windows line ends are left out; only line feeds separate lines.

    Args:
        path: Path of the file.

    Returns:
        List of strings, one for each line, without line ends.

    Raises:
        DataError: If the file is missing, empty or no UTF-8 text, or a line
            is empty. The message names the file and the line.
    """
    path = Path(path)
    content = _read_bytes(path).removeprefix(_BYTE_ORDER_MARK)
    if not content:
        raise DataError(f"{path}: the file is empty; give one text a line.")
    lines = _decode(path, content).split("\n")
    if not lines[-1]:
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise DataError(
                f"{path}, line {number}: the line is empty; "
                "give one text a line, or remove the pair."
            )
    return lines


def _read_bytes(path: Path) -> bytes:
    if not path.exists():
        raise DataError(f"{path}: there is no such file; check the path.")
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; give a text file.")
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path}: the name ends in .gz, but the file cannot be unpacked "
            f"({error}); pack it again."
        ) from error


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        place = error.start - content.rfind(b"\n", 0, error.start)
        raise DataError(
            f"{path}, line {number}, byte {place}: "
            f"0x{content[error.start]:02X} is not valid UTF-8; "
            "save the file as UTF-8."
        ) from error

"""Errors as one line each, and which errors are worth a stack trace."""

from __future__ import annotations

import traceback
from types import TracebackType

# What wrong input or a full disk leads to. Only if our own code raised it: a
# ValueError from inside Keras is a bug, and its trace is needed.
_RAISED_BY_US = (
    ValueError,
    TypeError,
    RuntimeError,
    ImportError,
    FloatingPointError,
)
_EXPECTED_ANYWHERE = (OSError, MemoryError)


def is_expected(error: BaseException) -> bool:
    """Whether an error is a wrong input, which one line explains.

    Args:
        error: The exception that was caught.

    Example:
        >>> is_expected(FileNotFoundError("no such file"))
        True
        >>> is_expected(KeyError("a bug"))
        False
    """
    if hasattr(error, "format_message"):
        return True  # A wrong option or argument, by typer.
    if isinstance(error, _EXPECTED_ANYWHERE):
        return True
    return isinstance(error, _RAISED_BY_US) and _raised_in_package(
        error.__traceback__
    )


def one_line(error: BaseException) -> str:
    r"""Say what is wrong in one line.

    Example:
        >>> one_line(ValueError("first\n   second"))
        'first second'
        >>> one_line(PermissionError(13, "Permission denied", "model.keras"))
        'model.keras: Permission denied'
    """
    if hasattr(error, "format_message"):
        message = error.format_message()
    elif isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = str(error)
    return " ".join(message.split()) or type(error).__name__


def _raised_in_package(trace: TracebackType | None) -> bool:
    innermost = None
    for innermost, _ in traceback.walk_tb(trace):  # noqa: B007
        pass
    if innermost is None:
        return False
    name = str(innermost.f_globals.get("__name__", ""))
    return name.partition(".")[0] == "keras_tfm"

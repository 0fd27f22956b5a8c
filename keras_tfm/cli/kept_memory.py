"""Let a training keep its memory from step to step, where malloc gives it back.

XLA asks for its buffers anew in each step, hundreds of MiB. glibc gives pieces
of that size back to the kernel at once, and the kernel fills them with zeros,
4 KiB at a time, in the next step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from collections.abc import Sequence

COMMANDS = ("train", "quickstart")
VARIABLE = "GLIBC_TUNABLES"
TUNABLES = {
    # One heap that only grows: no piece of it goes back and comes anew.
    "glibc.malloc.arena_max": 1,
    "glibc.malloc.mmap_max": 0,
    "glibc.malloc.trim_threshold": 2**40,
    # In pages of 2 MiB, where the kernel offers them.
    "glibc.malloc.hugetlb": 1,
}
# Whoever sets one of these has chosen how memory is handed out.
_CHOICES = (VARIABLE, "LD_PRELOAD")
_CHOICE_PREFIX = "MALLOC_"


def keep_memory(arguments: Sequence[str]) -> None:
    """Start this process anew, with malloc set up for a training, if it is one.

    malloc reads its settings when a process starts. The new program takes the
    place of this one, under the same process id, and finds the setting made.

    Args:
        arguments: List of strings, those of the command line.
    """
    if arguments[:1] and arguments[0] in COMMANDS and can_choose(os.environ):
        os.environ[VARIABLE] = tunables()
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execv(sys.executable, command)


def can_choose(environment: Mapping[str, str]) -> bool:
    """Return whether malloc is glibc's and nobody has set it up."""
    chosen = any(
        name in _CHOICES or name.startswith(_CHOICE_PREFIX)
        for name in environment
    )
    return not chosen and _is_glibc()


def tunables() -> str:
    """Return the settings as glibc reads them."""
    return ":".join(f"{name}={value}" for name, value in TUNABLES.items())


def _is_glibc() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):  # Another library does not know the name.
        return False
    return (version or "").startswith("glibc")

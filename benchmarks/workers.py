"""Contenders in processes of their own, which are asked and answer in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

_MARK = "answer "


class Worker:
    """A contender in a process of its own.

    Args:
        command: List of strings, what Python is to run. It calls `answer`.
        environment: Dictionary of further environment variables, or `None`.
    """

    def __init__(
        self, command: list[str], environment: dict[str, str] | None = None
    ) -> None:
        # A file: a pipe that nobody reads would fill up.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def ask(self, request: Any) -> Any:
        """Send a request and wait for the answer to it.

        Raises:
            RuntimeError: If the process ends; it holds what it has said.
        """
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                if line.startswith(_MARK):
                    return json.loads(line.removeprefix(_MARK))
        except BrokenPipeError:
            pass
        self._errors.seek(0)
        raise RuntimeError(self._errors.read()[-2000:])

    def close(self) -> None:
        """Let the process end, and wait for that."""
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()


def answer(function: Callable[[Any], Any]) -> None:
    """Answer each request on standard input until there are no more."""
    for line in sys.stdin:
        print(_MARK + json.dumps(function(json.loads(line))), flush=True)

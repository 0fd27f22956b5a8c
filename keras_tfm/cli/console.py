"""Where the command line writes to: results, notes and tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

# Of a log file, which has no width of its own.
_LOG_WIDTH = 100


def make_console(stderr: bool = False) -> Console:
    """Make a console of the standard output or error as they are now."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if stream.isatty() else _LOG_WIDTH,
    )


def note(message: str) -> None:
    """Write a line to the standard error, where it disturbs no result."""
    print(f"keras-tfm: {message}", file=sys.stderr, flush=True)


def say(message: str = "") -> None:
    """Write a line to the standard output."""
    print(message, flush=True)


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """Print a table of two columns, a name and what it is."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        table.add_row(name, fact)
    make_console().print(table)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Sequence[str] = (),
) -> None:
    """Print a table with a header.

    Args:
        title: String above the table.
        columns: Names of the columns.
        rows: The cells of each row.
        right: Names of the columns whose cells stand at the right.
    """
    table = Table(title=title, title_justify="left")
    for name in columns:
        side = "right" if name in right else "left"
        table.add_column(name, justify=side, overflow="fold")
    for row in rows:
        table.add_row(*row)
    make_console().print(table)

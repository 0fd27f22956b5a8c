"""The file of a training log: rows of numbers under a header, as CSV."""

import csv
import io
import os
import pathlib

# What every log has, in front of what the model measures.
FIRST_COLUMNS = ("step", "minutes", "tokens_per_second", "learning_rate")


def read_training_log(path):
    """Read what `TrainingLog` wrote, also while it is being written.

    Args:
        path: Path of the file.

    Returns:
        A dictionary of the columns: lists of floats of one length, with `None`
        where a row has no value.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is no training log.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "training_log.csv"
        >>> append_row(path, {"step": 7, "loss": 2.5})
        >>> log = read_training_log(path)
        >>> log["step"], log["loss"], log["minutes"]
        ([7.0], [2.5], [None])
        >>> folder.cleanup()
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no training log at {path}. Give the path that a "
            "training wrote its log to."
        )
    columns, rows = _read(path)
    return {
        name: [_number(row[index]) for row in rows]
        for index, name in enumerate(columns)
    }


def append_row(path, row):
    """Add a row to the end of a log, which is made if it is not there.

    A name that is new becomes a new column at the right: the file is written
    anew then, with empty cells above.

    Args:
        path: Path of the file.
        row: Dictionary of numbers; `None` leaves a cell empty.
    """
    path = pathlib.Path(path)
    columns = _header(path)
    new = [name for name in (*FIRST_COLUMNS, *row) if name not in columns]
    if new:
        columns, rows = _read(path)
        columns += dict.fromkeys(new)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, columns, rows)
    cells = [_cell(row.get(name)) for name in columns]
    # Opened for each row: an error anywhere leaves no open file behind.
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(_lines([cells]))


def drop_rows_after(path, step):
    """Remove what came after the step that a training is resumed from.

    At step 0, where a training begins, it is the whole file. The file is
    replaced at once: a kill leaves the old or the new one.

    Args:
        path: Path of the file, which need not be there.
        step: Non-negative integer.

    Raises:
        ValueError: If the file is no training log. It is left alone.
    """
    path = pathlib.Path(path)
    if not path.exists():
        return
    columns, rows = _read(path)
    if step == 0 or not columns:
        path.unlink()
        return
    kept = [row for row in rows if float(row[0]) <= step]
    _write(path, columns, kept)


def write_through(path):
    """Make sure that the file is on the disk, if it is there."""
    try:
        with pathlib.Path(path).open("rb+") as file:
            os.fsync(file.fileno())
    except FileNotFoundError:
        pass  # No row was due so far.


def _header(path):
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file), [])
    except FileNotFoundError:
        return []


def _read(path):
    # The columns, and the cells of each row. A line without an end was being
    # written when the training was killed, or is right now.
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return [], []
    except UnicodeDecodeError as error:
        raise ValueError(_no_log(path, "not UTF-8 text")) from error
    lines = text[: text.rfind("\n") + 1]
    columns, *rows = [*csv.reader(io.StringIO(lines, newline=""))] or [[]]
    if text and columns[:1] != ["step"]:
        first = text.partition("\n")[0][:60]
        raise ValueError(_no_log(path, f"its first line is {first!r}"))
    for number, row in enumerate(rows, start=2):
        if len(row) != len(columns) or not _are_numbers(row):
            raise ValueError(
                _no_log(path, f"line {number} is {','.join(row)[:60]!r}")
            )
    return columns, rows


def _no_log(path, why):
    return (
        f"{path} is no training log: {why}. Expected numbers under a header "
        'that begins with "step". Give another path, or remove the file.'
    )


def _write(path, columns, rows):
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    rows = [row + [""] * (len(columns) - len(row)) for row in rows]
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(_lines([columns, *rows]))
            file.flush()
            os.fsync(file.fileno())
        # A rename is atomic: a reader sees the old file or the new one.
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _lines(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _cell(value):
    if value is None:
        return ""
    # As many digits as a float32 has; a step has all of its own.
    return str(value) if isinstance(value, int) else f"{float(value):.7g}"


def _number(cell):
    return float(cell) if cell else None


def _are_numbers(row):
    try:
        float(row[0])  # The step is never left out.
        return len([_number(cell) for cell in row]) > 0
    except ValueError:
        return False

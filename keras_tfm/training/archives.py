"""NumPy archives that a kill cannot leave half written, and without pickles."""

import os
import pathlib

import numpy as np


def write_archive(path, arrays):
    """Write named arrays to one file; the file before stays until it is done.

    Args:
        path: Path of the file. Its folder must be there.
        arrays: Dictionary of NumPy arrays.

    Returns:
        The path.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        # A rename is atomic: a reader sees the old file or the new one.
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def read_archive(path, kind, advice, keys=None):
    """Read an archive that `write_archive` wrote. No code in it is run.

    Args:
        path: Path of the file.
        kind: String. What the file should be, for the message.
        advice: String. What to do if it is not, for the message.
        keys: Names of the arrays to read. Those not there are left out.
            Defaults to all.

    Returns:
        Dictionary of NumPy arrays.

    Raises:
        ValueError: If the file is no such archive, or is damaged.
    """
    try:
        # Opened here: NumPy leaves the file of a broken archive open.
        with pathlib.Path(path).open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            names = archive.files if keys is None else keys
            return {name: archive[name] for name in names if name in archive}
    except FileNotFoundError:
        raise
    except Exception as error:  # Whatever a broken archive makes NumPy raise.
        raise ValueError(
            f"{path} is not a {kind}, or is damaged: {error}. {advice}"
        ) from error

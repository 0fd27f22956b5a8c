"""The learning curves of a training, beside its log."""

from __future__ import annotations

from pathlib import Path

from keras_tfm.cli.console import note
from keras_tfm.cli.console import say
from keras_tfm.cli.training_folder import CURVES_FILE
from keras_tfm.cli.training_folder import LOG_FILE


def write_curves(folder: Path) -> None:
    """Draw the log of a training, and say where log and picture are.

    Without `matplotlib` there is no picture, and a note how to get it. Without
    a log, of a few steps, there is nothing to say.

    Args:
        folder: Path of the training.
    """
    log, picture = folder / LOG_FILE, folder / CURVES_FILE
    if not log.is_file():
        return
    from keras_tfm.visualization.learning_curves import plot_learning_curves

    drawn = f", as a picture in {picture}"
    try:
        plot_learning_curves(log, picture)
    except ImportError as error:
        note(f"there is no picture of the learning curves: {error}")
        drawn = ""
    say(f"The learning curves are in {log}{drawn}.")

"""The rows of a training log as scalars for TensorBoard."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_tfm.training.training_log import TrainingLog


class TensorBoardLog(keras.callbacks.Callback):
    """Write each row of a `TrainingLog` for TensorBoard, too.

    The `tensorboard` package is needed to look at them, not to write them. A
    training that is resumed goes on in the same folder: TensorBoard is told to
    forget the steps after the checkpoint.

    In the list of callbacks it comes right after the log.

    Args:
        folder: Path, made if it is not there.
        log: The log whose rows are written.

    Example:
        ```python
        log = TrainingLog("runs/training_log.csv")
        translator.fit(pairs, callbacks=[log, TensorBoardLog("runs", log)])
        # pip install tensorboard; tensorboard --logdir runs
        ```
    """

    def __init__(self, folder: str | Path, log: TrainingLog) -> None:
        super().__init__()
        self.folder = Path(folder)
        self._writer: tf.io.TFRecordWriter | None = None
        log.listeners.append(self.write)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._close()
        self.folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard reads the files of a folder in the order of their names.
        name = (
            f"events.out.tfevents.{time.time_ns() // 1000:017}"
            f".{socket.gethostname()}.{os.getpid()}"
        )
        self._writer = tf.io.TFRecordWriter(str(self.folder / name))
        self._write(file_version="brain.Event:2")
        step = int(self.model.optimizer.iterations)
        start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        # What has this step or a later one is forgotten.
        self._write(step=step + 1, session_log=start)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._close()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write one row: the step and its values by name."""
        summary = tf.compat.v1.Summary(
            value=[
                tf.compat.v1.Summary.Value(tag=name, simple_value=value)
                for name, value in values.items()
            ]
        )
        self._write(step=step, summary=summary)

    def _write(self, **fields: Any) -> None:
        if self._writer is not None:
            event = tf.compat.v1.Event(wall_time=time.time(), **fields)
            self._writer.write(event.SerializeToString())
            self._writer.flush()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None

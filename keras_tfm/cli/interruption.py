"""Stop a training gently on Ctrl-C, so that nothing is lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import keras

from keras_tfm.cli.console import note

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal(keras.callbacks.Callback):
    """Let a signal end the training after the step that runs.

    The training then stops as it does at its end, with a checkpoint. A second
    signal ends it at once. Used as a context, and as a callback inside.

    Attributes:
        received: The signal that came, or `None`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopOnSignal:
        if threading.current_thread() is threading.main_thread():
            self._before = {
                number: signal.signal(number, self._receive)
                for number in _SIGNALS
            }
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # At the beginning: the checkpoint at the end must see it.
        if self.received is not None:
            self.model.stop_training = True

    @property
    def exit_code(self) -> int:
        """What a program that a signal has ended returns."""
        return 128 + (self.received or signal.SIGINT)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self._restore()
        note(
            "stopping after this step, with a checkpoint. Once more stops at "
            "once."
        )

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

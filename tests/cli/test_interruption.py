"""A signal stops a training after its step, and a second one at once."""

import os
import signal
import time

import keras
import numpy as np
import pytest

from keras_tfm.cli.interruption import StopOnSignal
from keras_tfm.training.checkpoint import TrainingCheckpoint


class SendSignal(keras.callbacks.Callback):
    def __init__(self, number, step):
        super().__init__()
        self.number = number
        self.step = step
        self.seen = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.seen = batch + 1
        if batch + 1 == self.step:
            os.kill(os.getpid(), self.number)


def fit(callbacks):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss="mse", run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    x, y = np.ones((20, 3)), np.ones((20, 1))
    model.fit(x, y, 2, callbacks=callbacks, verbose=0)
    return model


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_training_with_a_checkpoint(number, tmp_path, capsys):
    before = signal.getsignal(number)
    send = SendSignal(number, 3)
    with StopOnSignal() as stop:
        model = fit([send, TrainingCheckpoint(tmp_path), stop])
    assert int(model.optimizer.iterations) == send.seen == 3
    assert (tmp_path / "checkpoint.npz").is_file()
    assert stop.received == number
    assert stop.exit_code == 128 + number
    assert signal.getsignal(number) == before
    assert "stopping after this step" in capsys.readouterr().err


def test_a_second_signal_ends_it_at_once():
    class SendTwo(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            os.kill(os.getpid(), signal.SIGINT)
            # Two at once would arrive as one.
            while stop.received is None:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

    # A process in the background of a script ignores this signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), StopOnSignal() as stop:
            fit([SendTwo(), stop])
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_a_signal_nothing_happens():
    before = signal.getsignal(signal.SIGINT)
    with StopOnSignal() as stop:
        model = fit([stop])
    assert int(model.optimizer.iterations) == 10
    assert stop.received is None
    assert signal.getsignal(signal.SIGINT) == before

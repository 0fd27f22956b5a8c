"""The progress of a training, in a log and on a terminal."""

import io

import keras
import numpy as np
import pytest
from rich.console import Console

from keras_tfm.cli import progress as progress_module
from keras_tfm.cli.progress import TrainingProgress


def fit(progress, steps=30, epochs=1):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss="mse", run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    x, y = np.ones((2 * steps, 3)), np.ones((2 * steps, 1))
    model.fit(x, y, 2, epochs=epochs, callbacks=[progress], verbose=0)
    return progress


def test_a_log_gets_a_first_and_a_last_line(capsys):
    fit(TrainingProgress(30, None, 100.0, 1))
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("compiling")
    assert last.startswith("step 30/30 · 0:00 left · ")
    assert "tokens/s · loss " in last


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "_LINE_SECONDS", 0.0)
    fit(TrainingProgress(None, 5.0, 100.0, 1), steps=7)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" · ")[0] for line in lines[1:]] == [
        *(f"step {step}" for step in range(1, 8)),
        "step 7",
    ]
    assert " · 5:00 left · " in lines[-1]


def test_the_loss_is_that_of_the_last_steps_and_not_of_the_epoch(
    capsys, monkeypatch
):
    monkeypatch.setattr(progress_module, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress_module, "_MEAN_STEPS", 5)
    losses = []

    class Record(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            x, y = np.ones((2, 3)), np.ones((2, 1))
            losses.append(float(np.mean((self.model(x) - y) ** 2)))

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), loss="mse", run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    model.set_weights([np.full((3, 1), 2.0), np.zeros(1)])
    x, y = np.ones((30, 3)), np.ones((30, 1))
    progress = TrainingProgress(15, None, 1.0, 1)
    model.fit(x, y, 2, callbacks=[Record(), progress], verbose=0)
    lines = capsys.readouterr().out.splitlines()
    # After update n Record computes the loss that update n + 1 starts from.
    expected = np.mean(losses[4:9])
    shown = float(lines[10].rpartition("loss ")[2])
    assert lines[10].startswith("step 10/15")
    assert shown == pytest.approx(expected, abs=1e-4)


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch, capsys):
    stream = io.StringIO()
    monkeypatch.setattr(progress_module, "_BAR_SECONDS", 0.0)
    monkeypatch.setattr(
        progress_module,
        "make_console",
        lambda: Console(file=stream, force_terminal=True, width=100),
    )
    progress = TrainingProgress(30, None, 100.0, 1)
    progress.close()
    fit(progress)
    assert "compiling" in stream.getvalue()
    assert "━" in stream.getvalue()
    assert capsys.readouterr().out.startswith("step 30/30")

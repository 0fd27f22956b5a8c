"""The progress of a training, in a log and on a terminal."""

import io

import keras
import numpy as np
import pytest
from rich.console import Console

from keras_tfm.cli import progress as progress_module
from keras_tfm.cli.meter import Meter
from keras_tfm.cli.progress import TrainingProgress


def fit(progress, steps=30, epochs=1, before=(), scaled=False, **arguments):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01, **arguments)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 1.0)
    model.compile(optimizer, loss="mse", run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    x, y = np.ones((2 * steps, 3)), np.ones((2 * steps, 1))
    callbacks = [*before, progress]
    model.fit(x, y, 2, epochs=epochs, callbacks=callbacks, verbose=0)
    return model


class Validate(keras.callbacks.Callback):
    """Hand a progress a result after some updates."""

    def __init__(self, progress, *steps):
        super().__init__()
        self.progress = progress
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 in self.steps:
            self.progress.show_result(f"step {batch + 1} · validation BLEU 7")


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


def test_a_short_epoch_has_means_too(capsys):
    model = fit(TrainingProgress(None, 5.0, 100.0, 1), steps=3, epochs=4)
    loss = model.history.history["loss"]
    assert loss[0] > loss[-1]
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("step 12 · ")
    assert float(line.rpartition("loss ")[2]) == pytest.approx(
        loss[-1], abs=1e-4
    )


def test_the_metrics_are_only_read(monkeypatch):
    monkeypatch.setattr(progress_module, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress_module, "_MEAN_STEPS", 5)
    seen = []
    record = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(logs["loss"])
    )
    progress = TrainingProgress(10, None, 1.0, 1)
    model = fit(progress, steps=10, before=[record])
    # Where they were reset with the last batch, the loss would be 0.
    assert model.history.history["loss"][0] == pytest.approx(seen[-1])
    assert seen[-1] > 0


@pytest.mark.parametrize("scaled", [False, True])
def test_a_step_is_an_update_and_not_a_batch(capsys, monkeypatch, scaled):
    monkeypatch.setattr(progress_module, "_LINE_SECONDS", 0.0)
    progress = TrainingProgress(5, None, 100.0, 1)
    model = fit(
        progress, steps=15, scaled=scaled, gradient_accumulation_steps=3
    )
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.partition("/5")[0] for line in lines] == [
        f"step {batch // 3}" for batch in [*range(1, 16), 15]
    ]
    # The tokens of three batches.
    assert progress._meter.tokens_per_step == 300
    # Resumed after 16 batches, the next update comes after two more.
    optimizer = model.optimizer
    getattr(optimizer, "inner_optimizer", optimizer).variables[0].assign(16)
    progress.set_model(model)
    progress.on_train_begin()
    assert progress._meter.start_step == 5
    for batch, step in enumerate([5, 6, 6, 6, 7]):
        progress.on_train_batch_end(batch)
        assert progress._meter.step == step


def test_a_result_is_a_line_of_its_own(capsys):
    progress = TrainingProgress(30, None, 100.0, 1)
    fit(progress, before=[Validate(progress, 10, 20)])
    first, ten, twenty, last = capsys.readouterr().out.splitlines()
    assert first.startswith("compiling")
    assert ten == "step 10 · validation BLEU 7"
    assert twenty == "step 20 · validation BLEU 7"
    assert last.startswith("step 30/30")


def test_the_time_of_a_validation_is_told_apart(monkeypatch):
    steps = []

    class Spy(Meter):
        def add(self, now, validated=False):
            super().add(now, validated)
            if validated:
                steps.append(self.step)

    monkeypatch.setattr(progress_module, "Meter", Spy)
    progress = TrainingProgress(30, None, 100.0, 1)
    fit(progress, before=[Validate(progress, 10, 20)])
    assert steps == [10, 20]


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
    fit(progress, before=[Validate(progress, 10)])
    assert "compiling" in stream.getvalue()
    assert "━" in stream.getvalue()
    # Above the bar, which comes again after it.
    _, result, after = stream.getvalue().partition("validation")
    assert result
    assert "━" in after
    assert capsys.readouterr().out.startswith("step 30/30")

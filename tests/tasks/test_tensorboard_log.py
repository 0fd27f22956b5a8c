"""The files that TensorBoard reads, read as TensorFlow writes its own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.tasks.tensorboard_log import TensorBoardLog
from keras_tfm.training.training_log import TrainingLog
from keras_tfm.training.training_log_file import read_training_log


def read_events(folder):
    """Return the events of a folder, in the order TensorBoard reads them."""
    return [
        tf.compat.v1.Event.FromString(record.numpy())
        for path in sorted(folder.iterdir())
        for record in tf.data.TFRecordDataset(str(path))
    ]


def scalars(events):
    return [
        (event.step, value.tag, value.simple_value)
        for event in events
        for value in event.summary.value
    ]


def make_model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    return model


def train(model, folder, epochs, *callbacks):
    log = TrainingLog(folder / "log.csv", every_steps=2)
    board = TensorBoardLog(folder / "board", log)
    model.fit(
        np.ones((3, 2)),
        np.zeros((3, 1)),
        batch_size=1,
        epochs=epochs,
        verbose=0,
        callbacks=[log, board, *callbacks],
    )
    return log


def test_every_row_of_the_log_becomes_scalars(tmp_path):
    class Validate(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            log.add(3, {"validation_bleu": 30.5})

    log = TrainingLog(tmp_path / "log.csv", every_steps=2)
    board = TensorBoardLog(tmp_path / "board", log)
    make_model().fit(
        np.ones((3, 2)),
        np.zeros((3, 1)),
        batch_size=1,
        verbose=0,
        callbacks=[log, board, Validate()],
    )
    rows = read_training_log(log.path)
    expected = [
        (int(step), name, pytest.approx(values[index], rel=1e-5, abs=1e-9))
        for index, step in enumerate(rows["step"])
        for name, values in rows.items()
        if name != "step" and values[index] is not None
    ]
    assert sorted(scalars(read_events(tmp_path / "board"))) == sorted(expected)
    assert (3, "validation_bleu", 30.5) in expected


def test_a_file_begins_as_tensorboard_wants_it(tmp_path):
    train(make_model(), tmp_path, 1)
    (path,) = (tmp_path / "board").iterdir()
    assert path.name.startswith("events.out.tfevents.")
    first, second, *_ = read_events(tmp_path / "board")
    assert first.file_version == "brain.Event:2"
    assert second.session_log.status == tf.compat.v1.SessionLog.START
    assert second.step == 1
    assert first.wall_time > 1e9


def test_a_resumed_training_goes_on_and_takes_back_what_was_lost(tmp_path):
    model = make_model()
    train(model, tmp_path, 2)
    model.optimizer.iterations.assign(3)  # as a checkpoint before the kill
    train(model, tmp_path, 1)
    events = read_events(tmp_path / "board")
    starts = [e.step for e in events if e.HasField("session_log")]
    assert starts == [1, 4]
    losses = [step for step, tag, _ in scalars(events) if tag == "loss"]
    assert losses == [2, 4, 6, 4, 6]


def test_after_an_error_a_new_training_writes_each_row_once(tmp_path):
    class Fail(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise FloatingPointError("no number")

    log = TrainingLog(tmp_path / "log.csv", every_steps=1)
    callbacks = [log, TensorBoardLog(tmp_path / "board", log)]
    data = np.ones((1, 2)), np.zeros((1, 1))
    with pytest.raises(FloatingPointError):
        make_model().fit(*data, verbose=0, callbacks=[*callbacks, Fail()])
    make_model().fit(*data, verbose=0, callbacks=callbacks)
    events = read_events(tmp_path / "board")
    losses = [step for step, tag, _ in scalars(events) if tag == "loss"]
    assert losses == [1, 1]  # one in each file

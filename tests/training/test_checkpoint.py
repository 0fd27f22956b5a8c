"""Checkpoints: exact, atomic, and refused when they are of another model."""

import keras
import numpy as np
import pytest

from keras_tfm.training.checkpoint import FILE_NAME
from keras_tfm.training.checkpoint import TrainingCheckpoint
from keras_tfm.training.checkpoint import load_checkpoint
from keras_tfm.training.checkpoint import save_checkpoint


def compiled_model(width=5):
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(width),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


def batch(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(7, 3)), rng.normal(size=(7, 1))


def train(model, seeds):
    return [float(model.train_on_batch(*batch(seed))) for seed in seeds]


def test_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    model = compiled_model()
    train(model, range(3))
    save_checkpoint(tmp_path, model, {"step": 3})
    expected = train(model, range(3, 6))

    other = compiled_model()
    assert load_checkpoint(tmp_path, other) == {"step": 3}
    # Dropout included: the states of the random streams are saved too.
    np.testing.assert_array_equal(train(other, range(3, 6)), expected)
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_failed_write_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    model = compiled_model()
    path = save_checkpoint(tmp_path, model, {"step": 1})
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(tmp_path, model, {"step": 2})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [FILE_NAME]


def test_refuses_a_checkpoint_of_another_model_and_changes_nothing(tmp_path):
    save_checkpoint(tmp_path, compiled_model(5), {"step": 1})
    other = compiled_model(4)
    before = [np.array(weight) for weight in other.weights]
    with pytest.raises(ValueError, match=r"is of another model: `model/0`"):
        load_checkpoint(tmp_path, other)
    for mine, kept in zip(other.weights, before, strict=True):
        np.testing.assert_array_equal(mine, kept)


def test_says_that_there_is_no_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no checkpoint in"):
        load_checkpoint(tmp_path, compiled_model())


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04broken"])
def test_says_that_a_file_is_no_checkpoint(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(ValueError, match="is not a checkpoint, or is damaged"):
        load_checkpoint(tmp_path, compiled_model())


def test_a_truncated_checkpoint_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, compiled_model(), {"step": 1})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is not a checkpoint, or is damaged"):
        load_checkpoint(tmp_path, compiled_model())


def test_the_callback_saves_when_training_stops(tmp_path):
    model = compiled_model()

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, index, logs=None):
            self.model.stop_training = index == 1

    state = {"step": 2}
    checkpoint = TrainingCheckpoint(tmp_path, minutes=60, state=lambda: state)
    x, y = batch(0)
    model.fit(x, y, 2, callbacks=[Stop(), checkpoint], verbose=0)
    assert load_checkpoint(tmp_path, compiled_model()) == state


def test_the_callback_saves_by_the_clock(tmp_path):
    model = compiled_model()
    checkpoint = TrainingCheckpoint(tmp_path, minutes=1e-9, state=dict)
    x, y = batch(0)
    model.fit(x, y, epochs=1, callbacks=[checkpoint], verbose=0)
    assert (tmp_path / FILE_NAME).is_file()
    with pytest.raises(ValueError, match="`minutes` must be a number above 0"):
        TrainingCheckpoint(tmp_path, minutes=0)


def test_the_callback_saves_after_batches_in_which_others_acted(tmp_path):
    model, saved = compiled_model(), []

    class Other(keras.callbacks.Callback):
        acted = False

        def on_train_batch_end(self, index, logs=None):
            self.acted = index in (1, 2)

    class Look(keras.callbacks.Callback):
        def on_train_batch_end(self, index, logs=None):
            path = tmp_path / FILE_NAME
            saved.append(path.exists() and load_checkpoint(tmp_path, twin))
            path.unlink(missing_ok=True)

    twin, others = compiled_model(), [Other(), Other()]

    def state():
        return {"step": int(model.optimizer.iterations)}

    checkpoint = TrainingCheckpoint(tmp_path, 60, state, also=others[:1])
    x, y = batch(0)
    model.fit(x, y, 2, callbacks=[*others, checkpoint, Look()], verbose=0)
    assert saved == [False, {"step": 2}, {"step": 3}, False]

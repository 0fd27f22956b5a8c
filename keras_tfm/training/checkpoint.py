"""The whole state of a training in one file, written so that a kill loses none.

A checkpoint holds the model's variables (with the states of its random
streams), the optimizer's, and a few numbers such as the step. It is a NumPy
archive: loading it runs no code.
"""

import json
import os
import pathlib
import time

import keras
import numpy as np

from keras_tfm.checks import check_positive

FILE_NAME = "checkpoint.npz"


def save_checkpoint(folder, model, state):
    """Write the state of a training; the file before stays until it is done.

    Args:
        folder: Path. Made if it is not there.
        model: Built and compiled Keras model.
        state: Dictionary of numbers and strings, such as the step.

    Returns:
        The path of the file.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _sync(model)
    arrays = {
        key: keras.ops.convert_to_numpy(variable.value)
        for key, variable in _variables(model)
    }
    path = folder / FILE_NAME
    temporary = folder / f".{FILE_NAME}.{os.getpid()}"
    try:
        with temporary.open("wb") as file:
            np.savez(file, state=np.array(json.dumps(state)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        # A rename is atomic: a reader sees the old file or the new one.
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def load_checkpoint(folder, model):
    """Put the state of a training back into a compiled model of the same kind.

    Args:
        folder: Path that `save_checkpoint` wrote to.
        model: Built and compiled Keras model.

    Returns:
        The dictionary that was saved.

    Raises:
        FileNotFoundError: If there is no checkpoint in the folder.
        ValueError: If the checkpoint is of another model or optimizer, or no
            checkpoint at all. Nothing is changed then.
    """
    path = pathlib.Path(folder) / FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no checkpoint in {folder}. Start the training anew, "
            "without resuming."
        )
    try:
        # Opened here: NumPy leaves the file of a broken archive open.
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            arrays = {key: archive[key] for key in archive.files}
        state = json.loads(str(arrays.pop("state")))
    except Exception as error:  # Whatever a broken archive makes NumPy raise.
        raise ValueError(
            f"{path} is not a checkpoint, or is damaged: {error}. Start the "
            "training anew, without resuming."
        ) from error
    variables = dict(_variables(model))
    shapes = {key: tuple(value.shape) for key, value in variables.items()}
    saved = {key: array.shape for key, array in arrays.items()}
    if shapes != saved:
        key = next(
            key
            for key in sorted({*shapes, *saved})
            if shapes.get(key) != saved.get(key)
        )
        raise ValueError(
            f"{path} is of another model: `{key}` has the shape "
            f"{saved.get(key, 'none')} there and {shapes.get(key, 'none')} "
            "here. Resume with the settings that the training began with."
        )
    for key, variable in variables.items():
        variable.assign(arrays[key])
    return state


def _variables(model):
    # By position: names depend on what else a process has made.
    groups = (
        ("model", model.variables),
        ("optimizer", model.optimizer.variables),
    )
    metrics = {id(v) for metric in model.metrics for v in metric.variables}
    for group, variables in groups:
        kept = [v for v in variables if id(v) not in metrics]
        for index, variable in enumerate(kept):
            yield f"{group}/{index}", variable


def _sync(model):
    # On the JAX backend `fit` keeps its state to itself until it is asked.
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


class TrainingCheckpoint(keras.callbacks.Callback):
    """Write a checkpoint now and then, and when training stops.

    Args:
        folder: Path to write to.
        minutes: Positive float. Time between two checkpoints.
            Defaults to `2.0`.
        state: Function that returns the dictionary to save along.
    """

    def __init__(self, folder, minutes=2.0, state=dict):
        super().__init__()
        self.folder = folder
        self.seconds = 60 * check_positive("minutes", minutes)
        self.state = state
        self._saved_at = None

    def on_train_begin(self, logs=None):
        self._saved_at = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        # Also the moment training stops: afterwards Keras replaces the weights
        # by their moving average, from which training could not go on.
        due = time.monotonic() - self._saved_at >= self.seconds
        if due or self.model.stop_training:
            save_checkpoint(self.folder, self.model, self.state())
            self._saved_at = time.monotonic()

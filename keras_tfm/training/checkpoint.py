"""The whole state of a training in one file, written so that a kill loses none.

A checkpoint holds the model's variables (with the states of its random
streams), the optimizer's, and a few numbers such as the step. It is a NumPy
archive: loading it runs no code.
"""

import json
import pathlib
import time

import keras
import numpy as np

from keras_tfm.checks import check_positive
from keras_tfm.training.archives import read_archive
from keras_tfm.training.archives import write_archive
from keras_tfm.training.model_variables import sync_variables

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
    sync_variables(model)
    arrays = {
        key: keras.ops.convert_to_numpy(variable.value)
        for key, variable in _variables(model)
    }
    return write_archive(
        folder / FILE_NAME, {"state": np.array(json.dumps(state)), **arrays}
    )


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
    advice = "Start the training anew, without resuming."
    arrays = read_archive(path, "checkpoint", advice)
    try:
        state = json.loads(str(arrays.pop("state")))
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path} is not a checkpoint, or is damaged: {error}. {advice}"
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


class TrainingCheckpoint(keras.callbacks.Callback):
    """Write a checkpoint now and then, and when training stops.

    Args:
        folder: Path to write to.
        minutes: Positive float. Time between two checkpoints.
            Defaults to `2.0`.
        state: Function that returns the dictionary to save along.
        also: Callbacks that come before this one, such as
            `CheckpointAveraging` and `Validation`. After each batch after which
            one of them has `acted`, a checkpoint is written: what they wrote
            then belongs to it.
    """

    def __init__(self, folder, minutes=2.0, state=dict, also=()):
        super().__init__()
        self.folder = folder
        self.seconds = 60 * check_positive("minutes", minutes)
        self.state = state
        self.also = tuple(also)
        self._saved_at = None
        self._trained = None

    def set_model(self, model):
        super().set_model(model)
        # On the JAX backend each question for `self.model` makes `fit` hand
        # over its whole state.
        self._trained = model

    def on_train_begin(self, logs=None):
        self._saved_at = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        # Also the moment training stops: afterwards Keras replaces the weights
        # by their moving average, from which training could not go on.
        due = time.monotonic() - self._saved_at >= self.seconds
        acted = any(callback.acted for callback in self.also)
        if due or acted or self._trained.stop_training:
            # First: `state` may ask the optimizer how far it is.
            sync_variables(self._trained)
            save_checkpoint(self.folder, self._trained, self.state())
            self._saved_at = time.monotonic()

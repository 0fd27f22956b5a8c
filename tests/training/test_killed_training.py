"""Killed at any moment and resumed, a training ends bit for bit the same.

The whole chain of callbacks: averaging, validation, early stopping, checkpoint.
"""

import json

import keras
import numpy as np
import pytest
from training.tiny_training import assert_same
from training.tiny_training import compiled_model
from training.tiny_training import data
from training.tiny_training import fit
from training.tiny_training import weights_of

from keras_tfm.training.checkpoint import FILE_NAME
from keras_tfm.training.checkpoint import TrainingCheckpoint
from keras_tfm.training.checkpoint import load_checkpoint
from keras_tfm.training.checkpoint_averaging import CheckpointAveraging
from keras_tfm.training.snapshots import BestSnapshots
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots
from keras_tfm.training.validation import Validation

STEPS, EVERY_STEPS, PATIENCE = 19, 2, 2


class Kill(BaseException):
    """The process is gone."""


class KillAt(keras.callbacks.Callback):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_train_begin(self, logs=None):
        self.done = int(self.model.optimizer.iterations)

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        if self.done == self.step:
            raise Kill


def new_model():
    return compiled_model(use_ema=True, ema_momentum=0.8)


class Session:
    """One process: everything new but the folder.

    Only the model may be an old one, as new again: it is compiled already.
    """

    def __init__(self, folder, model, by_score=False):
        self.folder = folder
        self.model = model
        keep = BestSnapshots(2) if by_score else LastSnapshots(2)
        self.averaging = CheckpointAveraging(
            Snapshots(folder / "snapshots", keep),
            EVERY_STEPS,
            self.last_score if by_score else None,
        )
        self.validation = Validation(
            self.score,
            EVERY_STEPS,
            averaging=None if by_score else self.averaging,
            patience=PATIENCE,
            best_path=folder / "best",
        )
        self.watchers = [self.averaging, self.validation]
        if by_score:
            self.watchers.reverse()
        self.checkpoint = TrainingCheckpoint(
            folder, 60, self.state, also=self.watchers
        )

    def score(self):
        # Better and better, and then no more; measured on the weights too.
        x, y = data(STEPS)
        error = np.mean(np.square(np.array(self.model(x)) - y))
        step = int(self.model.optimizer.iterations)
        return {"validation_loss": abs(step - 8) + float(error) / 100}

    def last_score(self):
        return -self.validation.history[-1]["validation_loss"]

    def state(self):
        step = int(self.model.optimizer.iterations)
        return {"step": step, "validation": self.validation.state()}

    def run(self, kill_at=None, place=0):
        """Train to the end, or be killed before the callback at `place`."""
        if (self.folder / FILE_NAME).is_file():
            state = load_checkpoint(self.folder, self.model)
            self.validation.restore(state["validation"])
        chain = [*self.watchers, self.checkpoint]
        if kill_at is not None:
            chain.insert(place, KillAt(kill_at))
        if not self.validation.exhausted:
            fit(self.model, chain, STEPS)
        return self

    def found(self):
        """Return all that must be the same, files included."""
        files = {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*.npz")
        }
        self.averaging.finish(self.model)
        mean = weights_of(self.model)
        self.validation.restore_best(self.model)
        best = weights_of(self.model)
        return files, mean, best, json.dumps(self.validation.history)


def kill_and_resume(folder, kills, model_like_new, by_score=False):
    for kill_at, place in kills:
        with pytest.raises(Kill):
            Session(folder, model_like_new(), by_score).run(kill_at, place)
    return Session(folder, model_like_new(), by_score).run().found()


def check(found, expected):
    assert found[0] == expected[0]
    assert_same(found[1], expected[1])
    assert_same(found[2], expected[2])
    assert found[3] == expected[3]


@pytest.fixture(scope="module")
def model_like_new():
    model = new_model()
    variables = [*model.variables, *model.optimizer.variables]
    values = [np.array(variable.value) for variable in variables]

    def renew():
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        return model

    return renew


@pytest.fixture(scope="module")
def whole(tmp_path_factory, model_like_new):
    session = Session(tmp_path_factory.mktemp("whole"), model_like_new()).run()
    assert int(session.model.optimizer.iterations) == 12
    return session.found()


def test_the_training_to_compare_with_is_what_it_should_be(whole):
    files, mean, best, history = whole
    # Patience ended it at step 12, which has a checkpoint; the best was 8.
    assert sorted(files) == [
        "best/step_00000006.npz",
        "best/step_00000008.npz",
        "checkpoint.npz",
        "snapshots/step_00000008.npz",
        "snapshots/step_00000010.npz",
        "snapshots/step_00000012.npz",
    ]
    assert [r["step"] for r in json.loads(history)] == [2, 4, 6, 8, 10, 12]
    assert mean[0].tobytes() != best[0].tobytes()


@pytest.mark.parametrize(
    "kills",
    [
        # Before the first checkpoint, and between any two callbacks.
        [(2, 1), (2, 2), (3, 3)],
        [(8, 0), (8, 1), (8, 2), (8, 3)],
        # Between two checkpoints, and at the last step.
        [(9, 3), (12, 1), (12, 2)],
        # After the last checkpoint there is nothing left to train.
        [(12, 3)],
    ],
    ids=["first", "middle", "last", "after"],
)
def test_a_kill_changes_nothing(tmp_path, whole, model_like_new, kills):
    check(kill_and_resume(tmp_path, kills, model_like_new), whole)


def test_a_kill_changes_nothing_when_the_model_is_built_anew(tmp_path, whole):
    check(kill_and_resume(tmp_path, [(6, 2)], new_model), whole)


def test_a_kill_changes_nothing_when_the_best_are_averaged(
    tmp_path, model_like_new
):
    # Validation comes first here: its result is the score of the snapshot.
    folder = tmp_path / "whole"
    whole = Session(folder, model_like_new(), by_score=True).run().found()
    kills = [(6, 2), (8, 1), (11, 3)]
    killed = kill_and_resume(tmp_path / "k", kills, model_like_new, True)
    check(killed, whole)


def test_a_training_that_ends_where_it_resumes_forgets_what_came_later(
    tmp_path, model_like_new
):
    # Snapshot and best weights of step 8 are there, and no checkpoint knows.
    with pytest.raises(Kill):
        Session(tmp_path / "k", model_like_new()).run(8, 2)
    resumed = Session(tmp_path / "k", model_like_new())
    state = load_checkpoint(resumed.folder, resumed.model)
    assert state["step"] == 6
    resumed.validation.restore(state["validation"])
    _, mean, best, history = resumed.found()

    short = Session(tmp_path / "short", model_like_new())
    fit(short.model, [*short.watchers, short.checkpoint], 6)
    check((None, mean, best, history), (None, *short.found()[1:]))

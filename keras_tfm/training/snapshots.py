"""Weights of several steps of one training, in files that a kill cannot harm.

The invariant: from the last checkpoint on, every snapshot that a mean could
ask for is there. A checkpoint is written right after each snapshot, at the same
step, and a training that was killed goes on from it. So when a snapshot is
added there is a checkpoint no older than the snapshots that are there, and
what is outside the choice among them can go: a choice is the first few of a
fixed order, so that what was outside once stays outside whatever comes. The
new snapshot takes no part in this, because it may be lost: until the checkpoint
after it, training may go on from the one before, whose mean does not know it.
That is why one file more than asked for may lie in the folder.
"""

import math
import pathlib
import re

import numpy as np

from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_whole_number
from keras_tfm.training.archives import read_archive
from keras_tfm.training.archives import write_archive

_NAME = re.compile(r"step_(\d{8,})\.npz")
_SCORE = "score"


class LastSnapshots:
    """Choose the latest.

    Args:
        count: Positive integer. How many.

    Example:
        >>> LastSnapshots(2).choose([10, 20, 30], None)
        [20, 30]
    """

    needs_score = False

    def __init__(self, count):
        self.count = check_positive_int("count", count)

    def choose(self, steps, score_of):
        """Return the steps chosen, in rising order."""
        return sorted(steps)[-self.count :]


class BestSnapshots:
    """Choose those with the highest scores, the later one of two equals.

    A score that is no number is lower than any.

    Args:
        count: Positive integer. How many.

    Example:
        >>> BestSnapshots(2).choose([10, 20, 30], {10: 5, 20: 3, 30: 4}.get)
        [10, 30]
    """

    needs_score = True

    def __init__(self, count):
        self.count = check_positive_int("count", count)

    def choose(self, steps, score_of):
        """Return the steps chosen, in rising order."""

        def rank(step):
            score = score_of(step)
            return (-math.inf if math.isnan(score) else score, step)

        return sorted(sorted(steps, key=rank)[-self.count :])


class Snapshots:
    """A folder of weights, one file a step: `step_00001200.npz`.

    Only trainable weights are held, by position and as float32. They have no
    names: the order of a model's variables is the same in every process.

    Args:
        folder: Path. Made when the first snapshot is added.
        keep: `LastSnapshots` or `BestSnapshots`: which ones stay, and make the
            mean.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     snapshots = Snapshots(folder, LastSnapshots(2))
        ...     for step in (10, 20, 30):
        ...         snapshots.add(step, [np.array([step, 2.0 * step])])
        ...     snapshots.mean()
        [array([25., 50.], dtype=float32)]
    """

    def __init__(self, folder, keep):
        self.folder = pathlib.Path(folder)
        self.keep = keep

    def add(self, step, weights, score=None):
        """Write a snapshot. Before, delete those that are chosen no longer.

        Args:
            step: Whole number, later than all that are there.
            weights: List of arrays.
            score: Float, the higher the better. `BestSnapshots` needs it.

        Raises:
            ValueError: If there is a snapshot of that step or a later one, or
                if a score is needed and none is given.
        """
        check_whole_number("step", step)
        before = self.steps()
        if before and before[-1] >= step:
            raise ValueError(
                f"A snapshot of step {step} cannot be added: there is "
                f"{self._path(before[-1])}. Call `forget_after` with the step "
                "that training goes on from."
            )
        if self.keep.needs_score and score is None:
            raise ValueError(
                f"{type(self.keep).__name__} chooses by score, and the "
                f"snapshot of step {step} has none. Give `score`."
            )
        arrays = {
            str(index): np.asarray(weight, "float32")
            for index, weight in enumerate(weights)
        }
        if score is not None:
            arrays[_SCORE] = np.array(score, "float64")
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in sorted({*before} - {*self._chosen(before)}):
            self._path(old).unlink(missing_ok=True)
        write_archive(self._path(step), arrays)

    def steps(self):
        """Return the steps of all files, in rising order."""
        if not self.folder.is_dir():
            return []
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def load(self, step, shapes=None):
        """Return the weights of one step.

        Args:
            step: Whole number.
            shapes: List of the shapes that the weights must have. Defaults to
                any.

        Returns:
            List of float32 arrays.

        Raises:
            FileNotFoundError: If there is no snapshot of that step.
            ValueError: If the file is damaged, or of another model.
        """
        path = self._path(step)
        arrays = self._read(step)
        arrays.pop(_SCORE, None)
        keys = [str(index) for index in range(len(arrays))]
        if not arrays or sorted(keys) != sorted(arrays):
            raise ValueError(
                f"{path} is not a snapshot: it holds {sorted(arrays)[:3]}. "
                "Delete it."
            )
        weights = [arrays[key] for key in keys]
        found = [weight.shape for weight in weights]
        expected = found if shapes is None else [tuple(s) for s in shapes]
        if found != expected:
            raise ValueError(
                f"{path} is of another model: it holds the shapes {found}, and "
                f"{expected} was expected. Delete it, or use another folder."
            )
        return weights

    def mean(self, step=None, shapes=None):
        """Return the mean of the snapshots that `keep` chooses.

        It is summed in float64. There may be fewer of them than asked for.

        Args:
            step: Whole number. Leave out later snapshots. It must not be
                before the last checkpoint. Defaults to the latest.
            shapes: List of the shapes that the weights must have. Defaults to
                those of the first.

        Returns:
            List of float32 arrays.

        Raises:
            ValueError: If there is no snapshot, or one of another model.
        """
        steps = [s for s in self.steps() if step is None or s <= step]
        if not steps:
            raise ValueError(
                f"There is no snapshot in {self.folder} to average. Train for "
                "longer, or take snapshots more often."
            )
        chosen = self._chosen(steps)
        sums = None
        for number in chosen:
            weights = self.load(number, shapes)
            if sums is None:
                shapes = [weight.shape for weight in weights]
                sums = [np.zeros(shape, "float64") for shape in shapes]
            for total, weight in zip(sums, weights, strict=True):
                total += weight
        return [(total / len(chosen)).astype("float32") for total in sums]

    def forget_after(self, step):
        """Delete what a training that goes on from `step` has yet to make."""
        for later in self.steps():
            if later > step:
                self._path(later).unlink(missing_ok=True)
        # What a kill has left of a file that was being written.
        for path in self.folder.glob(".step_*.npz.*"):
            path.unlink(missing_ok=True)

    def _chosen(self, steps):
        return self.keep.choose(steps, self._score_of)

    def _score_of(self, step):
        score = self._read(step, [_SCORE]).get(_SCORE)
        if score is None or score.shape:
            raise ValueError(
                f"{self._path(step)} has no score, and "
                f"{type(self.keep).__name__} chooses by score. Delete it, or "
                "use another folder."
            )
        return float(score)

    def _path(self, step):
        return self.folder / f"step_{step:08d}.npz"

    def _read(self, step, keys=None):
        path = self._path(step)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no {path}. Resume from an earlier checkpoint, or "
                "train anew."
            )
        return read_archive(path, "snapshot", "Delete it.", keys)

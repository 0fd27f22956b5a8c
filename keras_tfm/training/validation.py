"""Validation while training: what was best, and when to stop."""

import contextlib
import math

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive_int
from keras_tfm.training.model_variables import read_weights
from keras_tfm.training.model_variables import replace_weights
from keras_tfm.training.periodic_callback import PeriodicCallback
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots

_MODES = ("higher", "lower")
# By the last word of a name such as `validation_bleu`.
_KNOWN_MODES = {
    "accuracy": "higher",
    "bleu": "higher",
    "chrf": "higher",
    "loss": "lower",
    "match": "higher",
    "perplexity": "lower",
}


class Validation(PeriodicCallback):
    """Score the model every `every_steps` updates, and stop when it stalls.

    It comes after `CheckpointAveraging` and before `TrainingCheckpoint` in the
    list of callbacks, and is handed to the latter (`also`), whose `state`
    holds `state()`. Resumed, with `restore()`, it goes on as if nothing had
    happened. Only the calls of `on_result` after the last checkpoint are made
    again.

    The file of the best weights carries its step. It stays until a better one
    has been found and a checkpoint knows it; what a killed session wrote after
    its last checkpoint is deleted when training begins.

    Trainable weights alone are averaged and saved. Others, such as the
    statistics of a `BatchNormalization`, are left as they are.

    Args:
        score: Function without arguments that returns a dictionary of floats,
            such as `{"validation_bleu": 31.2, "validation_loss": 2.1}`.
        every_steps: Positive integer, in updates.
        averaging: `CheckpointAveraging` or `MovingAverage`, whose weights are
            scored. Defaults to the model's own weights.
        monitor: String. The name that decides what is best. Defaults to the
            first that `score` returns.
        mode: `"higher"` or `"lower"`: what is better. Can be left out for
            names that end in accuracy, bleu, chrf, loss or perplexity.
        patience: Positive integer. After so many results in a row without a
            better one, training stops. Defaults to never.
        best_path: Path of a folder for the best weights, averaged if those
            were scored. Defaults to none.
        on_result: Function that is called with each result. Defaults to none.

    Attributes:
        history: List of the results: `{"step": 100, "validation_bleu": 31.2}`.

    Raises:
        ValueError: If a result lacks the name that decides, or if it is not
            known what is better.
    """

    def __init__(
        self,
        score,
        every_steps,
        averaging=None,
        monitor=None,
        mode=None,
        patience=None,
        best_path=None,
        on_result=None,
    ):
        super().__init__(every_steps)
        self.score = score
        self.averaging = averaging
        self.monitor = monitor
        self.mode = mode
        if mode is not None:
            check_choice("mode", mode, _MODES)
        if monitor is not None:
            self._is_higher_better(monitor)
        self.patience = patience
        if patience is not None:
            check_positive_int("patience", patience)
        self.on_result = on_result
        self.history = []
        # Only better ones are added: the last one is the best.
        self._best_weights = None
        if best_path is not None:
            self._best_weights = Snapshots(best_path, LastSnapshots(1))

    @property
    def best(self):
        """The best result, the earlier one of two equals, or `None`."""
        name, best = self._monitored(), None
        for result in self.history:
            if not math.isnan(result[name]) and (
                best is None or self._is_better(result[name], best[name])
            ):
                best = result
        return best

    @property
    def results_since_best(self):
        """How many results in a row were not better, up to now."""
        best = self.best
        if best is None:
            return len(self.history)
        return sum(result["step"] > best["step"] for result in self.history)

    @property
    def exhausted(self):
        """Whether patience is at its end: such a training is not resumed."""
        return (
            self.patience is not None
            and self.results_since_best >= self.patience
        )

    def state(self):
        """Return all that a resumed training must know, fit for JSON."""
        return {"history": [dict(result) for result in self.history]}

    def restore(self, state):
        """Take over what `state` returned, before `fit` is called.

        Raises:
            ValueError: If it is no such state.
        """
        try:
            self.history = [
                {"step": int(result["step"]), **_checked(result)}
                for result in state["history"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "The state of a validation is a dictionary with its `history`. "
                f"Received: {state!r}."
            ) from error
        self._check_monitored()

    def restore_best(self, model):
        """Put the best weights into a model whose training has ended.

        Args:
            model: The Keras model.

        Returns:
            The best result; `None` if there is none, and nothing was done.

        Raises:
            ValueError: If no weights were saved.
        """
        if self._best_weights is None:
            raise ValueError(
                "The best weights were not saved. Give `best_path`, the path "
                "of a folder for them."
            )
        best = self.best
        if best is not None:
            shapes = [tuple(v.shape) for v in model.trainable_variables]
            weights = self._best_weights.load(best["step"], shapes)
            replace_weights(model, weights)
        return best

    def begin(self, step):
        if self._best_weights is not None:
            self._best_weights.forget_after(step)

    def act(self, step):
        with self._scored_weights():
            result = {"step": step, **_checked(self.score())}
            self.history.append(result)
            self._check_monitored()
            # While the weights that were scored are in the model.
            if self._best_weights is not None and self.best is result:
                self._best_weights.add(step, read_weights(self.model))
        if self.on_result is not None:
            self.on_result(dict(result))
        if self.exhausted:
            self.model.stop_training = True

    def _scored_weights(self):
        if self.averaging is None:
            return contextlib.nullcontext()
        return self.averaging.averaged_weights(self.model)

    def _monitored(self):
        if self.monitor is not None or not self.history:
            return self.monitor
        return next(name for name in self.history[0] if name != "step")

    def _check_monitored(self):
        name = self._monitored()
        for result in self.history:
            if name not in result:
                names = ", ".join(key for key in result if key != "step")
                raise ValueError(
                    f"`score` must return {name!r}, which decides what is "
                    f"best. Received: {names}. Give another `monitor`."
                )
        if self.history:
            self._is_higher_better(name)

    def _is_better(self, value, best):
        name = self._monitored()
        return value > best if self._is_higher_better(name) else value < best

    def _is_higher_better(self, name):
        mode = self.mode or _KNOWN_MODES.get(name.rpartition("_")[2])
        if mode is None:
            raise ValueError(
                f"Is a higher {name!r} better, or a lower one? "
                'Give `mode`: "higher" or "lower".'
            )
        return mode == "higher"


def _checked(results):
    if not isinstance(results, dict) or not {*results} - {"step"}:
        raise ValueError(
            "`score` must return a dictionary of floats, such as "
            f"{{'validation_loss': 2.1}}. Received: {results!r}."
        )
    return {
        name: float(value) for name, value in results.items() if name != "step"
    }

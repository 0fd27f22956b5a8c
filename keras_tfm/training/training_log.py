"""A training's loss, scores, speed and learning rate, as rows of a file."""

import pathlib
import time

import keras

from keras_tfm.checks import check_positive
from keras_tfm.training.metric_sums import MetricSums
from keras_tfm.training.model_variables import sync_variables
from keras_tfm.training.periodic_callback import PeriodicCallback
from keras_tfm.training.training_log_file import FIRST_COLUMNS
from keras_tfm.training.training_log_file import append_row
from keras_tfm.training.training_log_file import drop_rows_after
from keras_tfm.training.training_log_file import read_training_log
from keras_tfm.training.training_log_file import write_through


class TrainingLog(PeriodicCallback):
    """Write a row of a CSV file every `every_steps` updates.

    Its columns are

    - `step`: updates of the optimizer, over all sessions;
    - `minutes`: time spent in `fit` over all sessions, compiling and
      validating included, without what was lost by a kill;
    - `tokens_per_second`: since the last row of this session, without the time
      before a call of `add`, such as that of a validation;
    - `learning_rate`: of the next update;
    - the loss and the metrics, by the names they have in Keras's logs: means
      over exactly the steps since the last row, also where an epoch ends
      between, see `MetricSums`;
    - any other number in Keras's logs, as it is at that step;
    - what `add` is given, in rows of their own.

    In the list of callbacks it comes before those that call `add`, and before
    `TrainingCheckpoint`, whose `state` holds `state()`. Resumed, with
    `restore()`, it drops the rows after the checkpoint and goes on as if
    nothing had happened, within a row too. Without `restore()` the first row
    covers the steps since the checkpoint. A training that begins at step 0
    begins the file anew.

    No row is written for the last steps of a session if none is due: a training
    that is resumed gets the rows of one that was not.

    Other callbacks may reset the metrics, or evaluate; on the JAX backend only
    if they give the metrics their values back, as `Validation` does.

    Args:
        path: Path of the file.
        every_steps: Positive integer, in updates. Defaults to `100`.
        tokens_per_step: Positive float, the real tokens of a batch, on
            average. Defaults to unknown, with empty cells.

    Attributes:
        listeners: List of functions that are called with each row: the step and
            a dictionary of floats.

    Raises:
        ValueError: When training begins, if there is another file at `path`.
        RuntimeError: If it comes after `TrainingCheckpoint`.
    """

    def __init__(self, path, every_steps=100, tokens_per_step=None):
        super().__init__(every_steps)
        self.path = pathlib.Path(path)
        self.tokens_per_step = tokens_per_step
        if tokens_per_step is not None:
            check_positive("tokens_per_step", tokens_per_step)
        self.listeners = []
        self._restored = {}
        self._sums = None
        self._logs = {}
        self._in_batch = False
        self._reads_each_batch = True
        # Of the last row, and when this session began.
        self._row_step = 0
        self._row_time = 0.0
        self._batch_time = 0.0
        self._began = 0.0
        self._minutes_before = 0.0

    def add(self, step, results):
        """Write a row of results that are not in Keras's logs.

        Args:
            step: Integer, the number of updates made.
            results: Dictionary of floats, such as `{"validation_bleu": 30.1}`.
                A `"step"` in it is left out.
        """
        if self._sums is None:
            raise RuntimeError(
                "The log is not open yet: add results while `fit` runs. "
                f"Received: step={step}, results={results!r}."
            )
        results = {k: float(v) for k, v in results.items() if k != "step"}
        self._write(step, {"minutes": self._minutes(), **results})
        now = time.monotonic()
        self._row_time += now - self._batch_time
        self._batch_time = now

    def state(self):
        """Return all that a resumed training must know, fit for JSON.

        The rows up to now are on the disk then.
        """
        if self._in_batch:
            raise RuntimeError(
                "The last batch is not in the log yet. Put `TrainingLog` "
                "before `TrainingCheckpoint` in the list of callbacks."
            )
        if self._sums is None:
            return dict(self._restored)
        self._stop()
        write_through(self.path)
        return {"minutes": self._minutes(), "sums": self._sums.state()}

    def restore(self, state):
        """Take over what `state` returned, before `fit` is called."""
        self._restored = dict(state)

    def begin(self, step):
        drop_rows_after(self.path, step)
        model = self.model
        # At step 0 too there may be sums: of the batches of the first update.
        self._sums = MetricSums(model)
        self._sums.restore(self._restored.get("sums", {}))
        self._minutes_before = self._restored.get(
            "minutes", _last_minutes(self.path)
        )
        self._restored = {}
        # The JAX backend hands over its state only when it is asked, and that
        # takes longer than to read a few numbers.
        self._reads_each_batch = not hasattr(model, "jax_state_sync")
        self._in_batch = False
        self._row_step = step
        self._began = self._row_time = self._batch_time = time.monotonic()

    def on_train_batch_begin(self, batch, logs=None):
        self._in_batch = True
        self._sums.start()

    def on_train_batch_end(self, batch, logs=None):
        self._logs = logs or {}
        if self._reads_each_batch:
            self._sums.stop()
        super().on_train_batch_end(batch, logs)
        self._in_batch = False
        self._batch_time = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        self._stop()

    def on_test_begin(self, logs=None):
        # `fit` with validation data: the metrics are about to be reset.
        self._stop()

    def act(self, step):
        self._sums.stop()
        now = time.monotonic()
        speed = None
        if self.tokens_per_step is not None:
            tokens = self.tokens_per_step * (step - self._row_step)
            speed = tokens / max(now - self._row_time, 1e-9)
        means = self._sums.means()
        others = {
            name: _number(value)
            for name, value in self._logs.items()
            if name not in means
        }
        first = (
            step,
            self._minutes(),
            speed,
            _number(self.model.optimizer.learning_rate),
        )
        row = dict(zip(FIRST_COLUMNS, first, strict=True))
        self._write(step, {**row, **means, **others})
        self._sums.clear()
        self._row_step, self._row_time = step, now

    def _write(self, step, row):
        append_row(self.path, {**row, "step": int(step)})
        values = {
            name: float(value)
            for name, value in row.items()
            if name != "step" and value is not None
        }
        for listener in self.listeners:
            listener(int(step), values)

    def _stop(self):
        if self._sums is not None:
            sync_variables(self.model)
            self._sums.stop()

    def _minutes(self):
        return self._minutes_before + (time.monotonic() - self._began) / 60


def _last_minutes(path):
    if not path.is_file():
        return 0.0
    minutes = read_training_log(path).get("minutes", [])
    return max((value for value in minutes if value is not None), default=0.0)


def _number(value):
    # Whatever a `train_step` of somebody's own puts into the logs.
    try:
        return float(keras.ops.convert_to_numpy(value))
    except (TypeError, ValueError):
        return None

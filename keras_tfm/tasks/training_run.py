"""One session of a training: compile, resume, fit, validate, checkpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_tfm.data.packed_batches import PackedBatches
from keras_tfm.data.token_weights import with_token_weights
from keras_tfm.models.encoder_decoder import EncoderDecoder
from keras_tfm.models.loss_model import LossModel
from keras_tfm.models.loss_model import with_labels
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.tensorboard_log import TensorBoardLog
from keras_tfm.tasks.training_batches import Batches
from keras_tfm.tasks.training_batches import watch_batches
from keras_tfm.tasks.validating import ValidationPlan
from keras_tfm.training.checkpoint import TrainingCheckpoint
from keras_tfm.training.checkpoint import load_checkpoint
from keras_tfm.training.checkpoint_averaging import CheckpointAveraging
from keras_tfm.training.metrics import ChunkedAccuracy
from keras_tfm.training.metrics import ChunkedPerplexity
from keras_tfm.training.moving_average import MovingAverage
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots
from keras_tfm.training.stopping import FailOnNaN
from keras_tfm.training.stopping import StopAfterMinutes
from keras_tfm.training.stopping import StopAfterSteps
from keras_tfm.training.training_log import TrainingLog
from keras_tfm.training.validation import Validation

LOG_FILE = "training_log.csv"
SNAPSHOT_FOLDER = "snapshots"
BEST_FOLDER = "best"
# More epochs than any training has: the callbacks stop it.
_WITHOUT_END = 1_000_000


def network_for(
    model: EncoderDecoder, batches: Batches, settings: TrainingSettings
) -> LossModel:
    """Return what is trained on such batches; its weights are the model's."""
    # Batches that make one update together share one mean, by their weights.
    weighted = settings.accumulation_steps > 1
    return LossModel(
        model,
        isinstance(batches, PackedBatches),
        settings.label_smoothing,
        reduction="sum" if weighted else "token_mean",
    )


def compile_network(network: LossModel, settings: TrainingSettings) -> None:
    """Give a network its optimizer and metrics, compiled by XLA."""
    network.compile(
        # Built before `fit`: a checkpoint can be read, and one program less is
        # compiled.
        optimizer=settings.make_optimizer(network.trainable_variables),
        metrics=[ChunkedAccuracy(), ChunkedPerplexity()],
        jit_compile=True,
    )
    if not network.optimizer.built:
        # Keras has wrapped it, to scale the loss.
        network.optimizer.build(network.trainable_variables)


def run_training(
    model: EncoderDecoder,
    batches: Batches,
    settings: TrainingSettings,
    *,
    steps: int | None = None,
    max_minutes: float | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    checkpoint_minutes: float = 2.0,
    validation: ValidationPlan | None = None,
    tensorboard: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, float]:
    """Train until a number of steps or a time, see `Translator.fit`."""
    if steps is None and max_minutes is None:
        raise ValueError(
            "A training needs an end: give `steps`, `max_minutes` or both."
        )
    if resume and folder is None:
        raise ValueError("To resume, give the `folder` of the training.")
    network = network_for(model, batches, settings)
    compile_network(network, settings)
    with tempfile.TemporaryDirectory() as temporary:
        # Snapshots need a place, also where nothing is to be kept.
        session = _Session(
            network,
            batches,
            settings,
            None if folder is None else Path(folder),
            Path(temporary),
            validation,
        )
        state = load_checkpoint(folder, network) if resume else {}
        session.restore(state)
        ends: list[keras.callbacks.Callback] = []
        if steps is not None:
            ends.append(StopAfterSteps(steps))
        if max_minutes is not None:
            ends.append(StopAfterMinutes(max_minutes))
        logs: dict[str, float] = {}
        done = steps is not None and session.updates() >= steps
        if not done and not session.exhausted():
            if tensorboard and session.log is not None:
                board = TensorBoardLog(session.log.path.parent, session.log)
                ends.append(board)
            logs = session.fit(state, ends, checkpoint_minutes, callbacks)
        session.finish()
        return {**logs, "steps": session.updates()}


class _Session:
    """The parts of a session, and what a checkpoint must know of them."""

    def __init__(
        self,
        network: LossModel,
        batches: Batches,
        settings: TrainingSettings,
        folder: Path | None,
        temporary: Path,
        plan: ValidationPlan | None,
    ) -> None:
        self.network = network
        self.batches = batches
        self.count = _BatchCount()
        self.settings = settings
        self.folder = folder
        place = folder or temporary
        an_epoch = max(
            batches.steps_per_epoch // settings.accumulation_steps, 1
        )
        self.averaging: CheckpointAveraging | MovingAverage | None = None
        if settings.average_last:
            self.averaging = CheckpointAveraging(
                Snapshots(
                    place / SNAPSHOT_FOLDER,
                    LastSnapshots(settings.average_last),
                ),
                settings.snapshot_steps or an_epoch,
            )
        elif settings.ema_momentum:
            self.averaging = MovingAverage()
        self.log = None
        if folder is not None:
            self.log = TrainingLog(
                folder / LOG_FILE,
                tokens_per_step=batches.tokens_per_step
                * settings.accumulation_steps,
            )
        self.validation = None
        if plan is not None:
            self.validation = Validation(
                plan.scorer(network, batches, settings),
                plan.every_steps or an_epoch,
                self.averaging,
                monitor=plan.monitor,
                patience=plan.patience,
                best_path=place / BEST_FOLDER,
                on_result=_all_of(self._log_result, plan.on_result),
            )

    def updates(self) -> int:
        """Return how many updates the optimizer has made."""
        return int(self.network.optimizer.iterations)

    def exhausted(self) -> bool:
        """Return whether the validation has ended the training before."""
        return self.validation is not None and self.validation.exhausted

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside the variables."""
        parts = {"log": self.log, "validation": self.validation}
        number = self.count.batches
        return {
            "step": self.updates(),
            "batches": number,
            # Of the first batch of the update that is being made.
            "data": self.batches.state(
                number - number % self.settings.accumulation_steps
            ),
            **{k: part.state() for k, part in parts.items() if part},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what a checkpoint kept."""
        # An older checkpoint counts updates alone.
        self.count.batches = state.get("batches", state.get("step", 0))
        for name in ("log", "validation"):
            part = getattr(self, name)
            if part is not None and name in state:
                part.restore(state[name])

    def fit(
        self,
        state: dict[str, Any],
        ends: Sequence[keras.callbacks.Callback],
        checkpoint_minutes: float,
        callbacks: Sequence[keras.callbacks.Callback],
    ) -> dict[str, float]:
        """Train until a callback says stop; return the last logs."""
        # In this order: the log has each batch first, what is validated is the
        # newest average, and the checkpoint knows all, also whether it ends.
        parts = [self.log, self.averaging, self.validation]
        acting = [
            part for part in parts if isinstance(part, keras.callbacks.Callback)
        ]
        chain = [self.count, FailOnNaN(), *ends, *acting]
        if self.folder is not None:
            chain.append(
                TrainingCheckpoint(
                    self.folder,
                    checkpoint_minutes,
                    self.state,
                    also=[part for part in acting if part is not self.log],
                )
            )
        dataset, budget = watch_batches(self._dataset(state), self.batches)
        history = self.network.fit(
            dataset,
            epochs=_WITHOUT_END,
            steps_per_epoch=self.batches.steps_per_epoch,
            shuffle=False,
            verbose=0,
            callbacks=[*chain, budget, *callbacks],
        ).history
        return {name: float(values[-1]) for name, values in history.items()}

    def finish(self) -> None:
        """Leave the weights that are best, or their average, in the model."""
        if self.validation is not None and self.validation.best is not None:
            self.validation.restore_best(self.network)
        elif self.averaging is not None:
            self.averaging.finish(self.network)

    def _dataset(self, state: dict[str, Any]) -> tf.data.Dataset:
        group = self.settings.accumulation_steps
        start = self.count.batches
        begun = start % group
        data = self.batches.dataset(start - begun, state.get("data"))
        if group > 1:
            data = with_token_weights(data, group).skip(begun)
        return data.map(with_labels)

    def _log_result(self, result: dict[str, float]) -> None:
        if self.log is not None:
            self.log.add(int(result["step"]), result)


class _BatchCount(keras.callbacks.Callback):
    """Count batches over all sessions: not every one of them is an update."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0
        self._last_batch = -1

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._last_batch = -1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # Several at once with `steps_per_execution`.
        self.batches += batch - self._last_batch
        self._last_batch = batch


def _all_of(
    *functions: Callable[[dict[str, float]], Any] | None,
) -> Callable[[dict[str, float]], None]:
    def call(result: dict[str, float]) -> None:
        for function in functions:
            if function is not None:
                function(result)

    return call

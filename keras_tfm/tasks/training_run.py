"""One session of a training: compile, resume, fit, checkpoint, stop."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_tfm.data.batching import BucketedBatches
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.training.checkpoint import TrainingCheckpoint
from keras_tfm.training.checkpoint import load_checkpoint
from keras_tfm.training.losses import SmoothedCrossEntropy
from keras_tfm.training.metrics import Perplexity
from keras_tfm.training.metrics import TokenAccuracy
from keras_tfm.training.stopping import FailOnNaN
from keras_tfm.training.stopping import StopAfterMinutes
from keras_tfm.training.stopping import StopAfterSteps

# More epochs than any training has: the callbacks stop it.
_WITHOUT_END = 1_000_000


def compile_model(model: keras.Model, settings: TrainingSettings) -> None:
    """Give a model its optimizer, loss and metrics, compiled by XLA."""
    model.compile(
        optimizer=settings.optimizer(),
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        metrics=[TokenAccuracy(), Perplexity()],
        jit_compile=True,
    )
    # Before `fit`: a checkpoint can be read, and one program less is compiled.
    model.optimizer.build(model.trainable_variables)


def run_training(
    model: keras.Model,
    batches: BucketedBatches,
    settings: TrainingSettings,
    *,
    steps: int | None = None,
    max_minutes: float | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    checkpoint_minutes: float = 2.0,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, float]:
    """Train until a number of steps or a time, see `Translator.fit`."""
    if steps is None and max_minutes is None:
        raise ValueError(
            "A training needs an end: give `steps`, `max_minutes` or both."
        )
    if resume and folder is None:
        raise ValueError("To resume, give the `folder` of the training.")
    compile_model(model, settings)
    start_step = 0
    if resume:
        start_step = load_checkpoint(folder, model)["step"]
    # In this order: the checkpoint must know whether training stops.
    chain: list[keras.callbacks.Callback] = [FailOnNaN()]
    if steps is not None:
        if start_step >= steps:
            _average_weights(model, settings)
            return {"steps": start_step}
        chain.append(StopAfterSteps(steps))
    if max_minutes is not None:
        chain.append(StopAfterMinutes(max_minutes))
    if folder is not None:
        chain.append(
            TrainingCheckpoint(folder, checkpoint_minutes, _state_of(model))
        )
    history = model.fit(
        batches.dataset(start_step=start_step),
        epochs=_WITHOUT_END,
        steps_per_epoch=batches.steps_per_epoch,
        shuffle=False,
        verbose=0,
        callbacks=[*chain, *callbacks],
    ).history
    logs = {name: float(values[-1]) for name, values in history.items()}
    return {**logs, "steps": int(model.optimizer.iterations)}


def _average_weights(model: keras.Model, settings: TrainingSettings) -> None:
    # A checkpoint holds the weights themselves; `fit` would end with this.
    if settings.ema_momentum:
        model.optimizer.finalize_variable_values(model.trainable_variables)


def _state_of(model: keras.Model) -> Callable[[], dict[str, Any]]:
    return lambda: {"step": int(model.optimizer.iterations)}

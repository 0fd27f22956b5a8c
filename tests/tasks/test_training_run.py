"""What a session of training compiles and refuses."""

import keras
import numpy as np
import pytest

from keras_tfm.data.batching import BucketedBatches
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.training_run import compile_model
from keras_tfm.tasks.training_run import run_training


def make_model():
    return Transformer(
        11, num_layers=1, hidden_dim=6, intermediate_dim=7, num_heads=3
    )


def make_batches():
    rng = np.random.default_rng(0)
    rows = [rng.integers(4, 11, 3).astype("int32") for _ in range(6)]
    return BucketedBatches(rows, rows, tokens_per_batch=8)


def test_the_optimizer_is_built_before_training_begins():
    model = make_model()
    compile_model(model, TrainingSettings())
    assert model.jit_compile
    assert model.optimizer.built
    assert len(model.optimizer.variables) > len(model.trainable_variables)


def test_steps_and_callbacks_are_counted_over_epochs():
    seen = []

    class Count(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(logs["loss"])

    batches = make_batches()
    steps = 2 * batches.steps_per_epoch + 1
    logs = run_training(
        make_model(),
        batches,
        TrainingSettings(),
        steps=steps,
        callbacks=[Count()],
    )
    assert logs["steps"] == len(seen) == steps
    assert {"loss", "token_accuracy", "perplexity"} < set(logs)


def test_a_loss_that_is_not_a_number_stops_the_training():
    model = make_model()
    model.weights[0].assign(np.full(model.weights[0].shape, np.nan))
    with pytest.raises(FloatingPointError, match="nan after update 1"):
        run_training(model, make_batches(), TrainingSettings(), steps=50)


def test_resuming_where_nothing_was_begun_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        run_training(
            make_model(),
            make_batches(),
            TrainingSettings(),
            steps=1,
            folder=tmp_path,
            resume=True,
        )


def test_a_loss_that_is_not_a_number_does_not_lose_the_checkpoint(tmp_path):
    model = make_model()
    settings = TrainingSettings()
    run_training(model, make_batches(), settings, steps=2, folder=tmp_path)
    before = (tmp_path / "checkpoint.npz").read_bytes()

    class Spoil(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            weight = self.model.weights[0]
            weight.assign(np.full(weight.shape, np.nan))

    with pytest.raises(FloatingPointError, match="lower learning rate"):
        run_training(
            model,
            make_batches(),
            settings,
            steps=9,
            folder=tmp_path,
            resume=True,
            callbacks=[Spoil()],
        )
    assert (tmp_path / "checkpoint.npz").read_bytes() == before


def test_a_training_that_was_done_before_gets_its_averaged_weights(tmp_path):
    settings = TrainingSettings(ema_momentum=0.9)
    arguments = {"steps": 3, "folder": tmp_path}
    model, again = make_model(), make_model()
    run_training(model, make_batches(), settings, **arguments)
    run_training(again, make_batches(), settings, **arguments, resume=True)
    for weight, other in zip(
        model.trainable_weights, again.trainable_weights, strict=True
    ):
        np.testing.assert_array_equal(weight, other)

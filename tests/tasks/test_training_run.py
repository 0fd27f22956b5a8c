"""What a session of training compiles, keeps, averages and refuses."""

import shutil

import keras
import numpy as np
import pytest
from tasks.eagerly import Eagerly

from keras_tfm.data.batching import BucketedBatches
from keras_tfm.data.packed_batches import PackedBatches
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.training_run import compile_network
from keras_tfm.tasks.training_run import network_for
from keras_tfm.tasks.training_run import run_training
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots


def make_model(**kwargs):
    keras.utils.set_random_seed(5)
    return Transformer(
        11,
        num_layers=1,
        hidden_dim=6,
        intermediate_dim=7,
        num_heads=3,
        **kwargs,
    )


def rows(number=23):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 5, (2, number))
    return [
        [rng.integers(4, 11, n).astype("int32") for n in side]
        for side in lengths
    ]


def make_batches():
    rng = np.random.default_rng(0)
    rows = [rng.integers(4, 11, 3).astype("int32") for _ in range(6)]
    return BucketedBatches(rows, rows, tokens_per_batch=8)


def make_packed(**kwargs):
    return PackedBatches(*rows(), 14, row_length=7, **kwargs)


def weights(model):
    return [keras.ops.convert_to_numpy(w) for w in model.weights]


def test_the_optimizer_is_built_before_training_begins():
    model = make_model()
    settings = TrainingSettings()
    network = network_for(model, make_batches(), settings)
    compile_network(network, settings)
    assert network.jit_compile
    assert network.optimizer.built
    assert len(network.optimizer.variables) > len(model.trainable_variables)


def test_packed_batches_train_a_model_of_packed_rows():
    model, settings = make_model(), TrainingSettings()
    plain = {"source_ids", "target_ids"}
    network = network_for(model, make_batches(), settings)
    assert set(network.body.input) == plain
    network = network_for(model, make_packed(), settings)
    assert set(network.body.input) == plain | {
        "source_segments",
        "target_segments",
    }


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
        callbacks=[Eagerly(), Count()],
    )
    assert logs["steps"] == len(seen) == steps
    assert {"loss", "token_accuracy", "perplexity"} < set(logs)


def test_a_batch_of_a_shape_that_was_not_promised_is_warned_of():
    class OddSecond(BucketedBatches):
        def dataset(self, *args, **kwargs):
            batches = super().dataset(*args, **kwargs)
            odd = batches.map(
                lambda inputs, labels: (
                    {name: ids[:1] for name, ids in inputs.items()},
                    labels[:1],
                )
            )
            return batches.take(1).concatenate(odd.take(1)).repeat()

    rows = [np.array([5, 6, 7])] * 6
    batches = OddSecond(rows, rows, tokens_per_batch=8)
    with pytest.warns(UserWarning, match=r"source_ids int32 \(1, 4\)"):
        run_training(
            make_model(),
            batches,
            TrainingSettings(),
            steps=2,
            callbacks=[Eagerly()],
        )


def test_a_loss_that_is_not_a_number_stops_the_training():
    model = make_model()
    model.weights[0].assign(np.full(model.weights[0].shape, np.nan))
    with pytest.raises(FloatingPointError, match="nan after update 1"):
        run_training(
            model,
            make_batches(),
            TrainingSettings(),
            steps=50,
            callbacks=[Eagerly()],
        )


def test_the_model_gets_the_mean_of_the_last_snapshots(tmp_path):
    model = make_model()
    settings = TrainingSettings(average_last=3, snapshot_steps=2)
    run_training(
        model,
        make_packed(),
        settings,
        steps=9,
        folder=tmp_path,
        callbacks=[Eagerly()],
    )
    snapshots = Snapshots(tmp_path / "snapshots", LastSnapshots(3))
    kept = [snapshots.load(step) for step in (4, 6, 8)]
    for index, weight in enumerate(model.trainable_weights):
        mean = np.mean([found[index] for found in kept], axis=0)
        np.testing.assert_allclose(weight, mean, atol=1e-6)


def test_batches_that_make_one_update_count_as_one_batch_of_all_tokens():
    # The same rows, once as 2 batches an update, once as one batch of both.
    source, target = rows()
    apart = PackedBatches(source, target, 14, row_length=7)
    assert apart.steps_per_epoch >= 6
    together = PackedBatches(source, target, 28, row_length=7)
    models = make_model(dropout=0.0), make_model(dropout=0.0)
    logs = [
        run_training(
            model,
            batches,
            TrainingSettings(accumulation_steps=number, clip_norm=0.5),
            steps=3,
            callbacks=[Eagerly()],
        )
        for model, batches, number in zip(
            models, (apart, together), (2, 1), strict=True
        )
    ]
    assert logs[0]["steps"] == logs[1]["steps"] == 3
    for one, other in zip(*map(weights, models), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_a_resumed_training_is_that_of_one_session(tmp_path):
    def resample(epoch):
        rng = np.random.default_rng(epoch)
        return [
            [np.append(ids, rng.integers(4, 11, rng.integers(0, 3)))
             for ids in side]
            for side in rows()
        ]  # fmt: skip

    settings = TrainingSettings(
        average_last=2,
        snapshot_steps=2,
        # An update is not made of one batch, nor an epoch of whole updates.
        accumulation_steps=3,
    )

    class CopyInTheMiddle(keras.callbacks.Callback):
        seen = 0

        def on_train_batch_end(self, batch, logs=None):
            self.seen += 1
            # What a kill would leave: five updates, and two thirds of one.
            if self.seen == 17:
                shutil.copytree(tmp_path / "whole", tmp_path / "parts")

    whole, parts = make_model(), make_model()
    run_training(
        whole,
        make_packed(resample=resample),
        settings,
        steps=11,
        folder=tmp_path / "whole",
        # A checkpoint after each batch.
        checkpoint_minutes=1e-9,
        callbacks=[CopyInTheMiddle()],
    )
    logs = run_training(
        parts,
        make_packed(resample=resample),
        settings,
        steps=11,
        folder=tmp_path / "parts",
        resume=True,
    )
    assert logs["steps"] == 11
    for one, other in zip(*map(weights, (whole, parts)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "policy",
    [
        "mixed_bfloat16",
        pytest.param("mixed_float16", marks=pytest.mark.slow),
    ],
)
def test_sixteen_bits_train_without_nan(policy):
    model = make_model(dtype=policy)
    losses = []

    class Show(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            losses.append(logs["loss"])

    show = Show()
    run_training(
        model,
        make_packed(),
        TrainingSettings(peak=0.02, warmup_steps=5),
        steps=40,
        callbacks=[show],
    )
    optimizer = show.model.optimizer
    scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled == (policy == "mixed_float16")
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0] - 0.1
    for weight in model.weights:
        assert np.isfinite(np.asarray(weight, "float32")).all(), weight.path

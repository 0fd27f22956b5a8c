"""Schedules: the published rates, for every kind of step."""

import json

import keras
import numpy as np
import pytest
from backend_functions import compiled

from keras_tfm.layers import TokenEmbedding
from keras_tfm.training import InverseSquareRoot
from keras_tfm.training import PaperSchedule
from keras_tfm.training import Perplexity
from keras_tfm.training import SmoothedCrossEntropy
from keras_tfm.training import Tensor2TensorSchedule
from keras_tfm.training import TokenAccuracy

SCHEDULES = pytest.mark.parametrize(
    "schedule",
    [
        InverseSquareRoot(1e-3, 7),
        PaperSchedule(512, 7, 3.0),
        Tensor2TensorSchedule(512, 7, 3.0),
    ],
    ids=lambda schedule: type(schedule).__name__,
)


def test_the_rate_of_tensor2tensor_peaks_at_9_88e_4():
    rate = Tensor2TensorSchedule(512)
    rates = [float(rate(step - 1)) for step in (7999, 8000, 8001)]
    assert f"{rates[1]:.2e}" == "9.88e-04"
    assert rates[1] == max(rates)
    assert rates[1] == pytest.approx(2 * 512**-0.5 * 8000**-0.5)


def test_the_rate_of_the_big_set_peaks_at_6_99e_4():
    assert f"{float(Tensor2TensorSchedule(1024)(7999)):.2e}" == "6.99e-04"


def test_the_rate_of_the_paper_peaks_at_6_99e_4():
    rate = PaperSchedule(512)
    rates = [float(rate(step - 1)) for step in (3999, 4000, 4001)]
    assert f"{rates[1]:.2e}" == "6.99e-04"
    assert rates[1] == max(rates)


@pytest.mark.parametrize("count", [1, 2, 100, 3999, 4000, 7999, 8000, 100_000])
def test_the_rates_are_those_of_the_formulas(count):
    # Updates are counted from 1, Keras's steps from 0.
    paper = 512**-0.5 * min(count**-0.5, count * 4000**-1.5)
    assert float(PaperSchedule(512)(count - 1)) == pytest.approx(
        paper, rel=1e-5
    )
    code = 2 * 512**-0.5 * min(1, count / 8000) * max(count, 8000) ** -0.5
    found = float(Tensor2TensorSchedule(512)(count - 1))
    assert found == pytest.approx(code, rel=1e-5)
    line = 5e-4 * min(count / 4000, (4000 / count) ** 0.5)
    found = float(InverseSquareRoot(5e-4)(count - 1))
    assert found == pytest.approx(line, rel=1e-5)


@SCHEDULES
def test_the_first_update_has_a_rate(schedule):
    assert 0 < float(schedule(0)) < float(schedule(6))
    assert float(schedule(0)) == pytest.approx(float(schedule(6)) / 7)


@SCHEDULES
def test_the_rate_rises_to_its_peak_and_falls(schedule):
    rates = [float(schedule(step)) for step in range(40)]
    assert int(np.argmax(rates)) == 6
    assert (np.diff(rates[:7]) > 0).all()
    assert (np.diff(rates[6:]) < 0).all()
    # Four times as many updates: half the rate.
    assert rates[27] == pytest.approx(rates[6] / 2)


@SCHEDULES
@pytest.mark.parametrize(
    "policy", ["float32", "mixed_float16", "mixed_bfloat16"]
)
def test_a_step_may_be_of_any_kind_under_every_policy(schedule, policy):
    expected = float(schedule(100))
    keras.config.set_dtype_policy(policy)
    # Keras counts in int64 on TensorFlow; JAX has no int64 by default.
    wide = "int64" if keras.backend.backend() == "tensorflow" else "int32"
    steps = [100, 100.0, np.array(100, wide)[()], np.array(100, "int32")]
    steps += [
        keras.ops.convert_to_tensor(100, dtype)
        for dtype in ("int32", wide, "float32")
    ]
    steps.append(keras.Variable(100, dtype=wide, trainable=False))
    for step in steps:
        found = schedule(step)
        assert keras.backend.standardize_dtype(found.dtype) == "float32"
        assert float(found) == expected


@SCHEDULES
def test_a_huge_step_is_counted_in_float32(schedule):
    keras.config.set_dtype_policy("mixed_float16")
    expected = float(schedule(6)) * (7 / 200_000) ** 0.5
    assert float(schedule(199_999)) == pytest.approx(expected, rel=1e-4)


@SCHEDULES
def test_a_compiled_rate_is_the_same(schedule):
    step = keras.ops.convert_to_tensor(12, "int32")
    assert float(compiled(schedule)(step)) == pytest.approx(
        float(schedule(12)), rel=1e-6
    )


@SCHEDULES
def test_the_config_is_exact_and_plain(schedule):
    config = schedule.get_config()
    assert json.loads(json.dumps(config)) == config
    again = type(schedule).from_config(config)
    assert again.get_config() == config
    assert float(again(3)) == float(schedule(3))
    stored = keras.optimizers.schedules.serialize(schedule)
    again = keras.optimizers.schedules.deserialize(stored)
    assert type(again) is type(schedule)


def test_each_config_holds_every_argument():
    assert InverseSquareRoot(1e-3, 7).get_config() == {
        "peak": 1e-3,
        "warmup_steps": 7,
    }
    for schedule in (PaperSchedule, Tensor2TensorSchedule):
        assert schedule(8, 7, 3).get_config() == {
            "hidden_dim": 8,
            "warmup_steps": 7,
            "scale": 3.0,
        }


@pytest.mark.parametrize("steps", [0, -1, 0.5])
@pytest.mark.parametrize(
    "schedule", [InverseSquareRoot, PaperSchedule, Tensor2TensorSchedule]
)
def test_a_warm_up_has_at_least_one_step(schedule, steps):
    with pytest.raises(ValueError, match="`warmup_steps` must be") as info:
        schedule(8, warmup_steps=steps)
    assert f"Received: warmup_steps={steps}" in str(info.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InverseSquareRoot(0.0), "`peak` must be a number above 0"),
        (lambda: PaperSchedule(0), "`hidden_dim` must be a whole number"),
        (
            lambda: Tensor2TensorSchedule(8, scale=-1),
            "`scale` must be a number",
        ),
    ],
)
def test_arguments_out_of_range_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


TRAIN_ON = """
    import keras
    import numpy as np

    import keras_tfm

    model = keras.saving.load_model("model.keras")
    stored = np.load("stored.npz")
    assert int(model.optimizer.iterations) == 3
    print("rate", float(model.optimizer.learning_rate))
    found = model.evaluate(stored["ids"], stored["ids"], verbose=0)
    np.testing.assert_allclose(found, stored["measured"], rtol=1e-5)
    model.train_on_batch(stored["ids"], stored["ids"])
    for index, weight in enumerate(model.trainable_weights):
        np.testing.assert_allclose(
            np.asarray(weight), stored[f"weight_{index}"], atol=1e-6
        )
    config = model.loss.get_config()
    print(type(model.loss).__name__, config["label_smoothing"])
"""


@SCHEDULES
def test_an_optimizer_with_a_schedule_is_serialised(schedule):
    optimizer = keras.optimizers.Adam(schedule)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert float(again.learning_rate) == float(schedule(0))


def test_training_goes_on_in_a_fresh_process(fresh_process, tmp_path):
    schedule = Tensor2TensorSchedule(8, 7)
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            TokenEmbedding(7, 4),
            keras.layers.Dense(7),
        ]
    )
    model.compile(
        keras.optimizers.Adam(schedule),
        SmoothedCrossEntropy(0.1),
        metrics=[TokenAccuracy(), Perplexity()],
    )
    ids = np.array([[3, 5, 1, 0], [2, 2, 0, 0]])
    for _ in range(3):
        model.train_on_batch(ids, ids)
    rate = float(schedule(3))
    assert float(model.optimizer.learning_rate) == pytest.approx(rate)
    model.save(tmp_path / "model.keras")
    measured = model.evaluate(ids, ids, verbose=0)
    model.train_on_batch(ids, ids)
    weights = {
        f"weight_{index}": np.asarray(weight)
        for index, weight in enumerate(model.trainable_weights)
    }
    np.savez(tmp_path / "stored.npz", ids=ids, measured=measured, **weights)
    lines = fresh_process(TRAIN_ON).splitlines()
    assert lines[-2].split()[0] == "rate"
    assert float(lines[-2].split()[1]) == pytest.approx(rate)
    assert lines[-1] == "SmoothedCrossEntropy 0.1"

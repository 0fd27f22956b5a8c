"""Training settings: checked, plain data, and an optimizer made of them."""

import dataclasses
import json

import keras
import pytest

from keras_tfm.tasks.settings import TrainingSettings


def test_is_plain_data():
    settings = TrainingSettings(peak=0.01, decay_steps=5000)
    data = json.loads(json.dumps(dataclasses.asdict(settings)))
    assert TrainingSettings(**data) == settings


def test_the_rate_rises_to_the_peak_and_falls():
    rate = TrainingSettings(peak=0.5, warmup_steps=4).optimizer().learning_rate
    assert float(rate) == pytest.approx(0.125)
    schedule = (
        TrainingSettings(peak=0.5, warmup_steps=10, decay_steps=100)
        .optimizer()
        ._learning_rate
    )
    rates = [float(schedule(step)) for step in (0, 10, 55, 100)]
    assert rates[1] == pytest.approx(0.5)
    assert 0 < rates[0] < rates[2] < rates[1]
    assert rates[3] == pytest.approx(0.005)


def test_the_moving_average_is_keras_own():
    assert not TrainingSettings().optimizer().use_ema
    optimizer = TrainingSettings(ema_momentum=0.9).optimizer()
    assert isinstance(optimizer, keras.optimizers.Adam)
    assert optimizer.use_ema
    assert optimizer.ema_momentum == 0.9


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("tokens_per_batch", 0),
        ("peak", 0.0),
        ("warmup_steps", 0),
        ("label_smoothing", 1.0),
        ("ema_momentum", -0.1),
        ("seed", -1),
        ("max_shapes", 0),
    ],
)
def test_names_an_argument_out_of_range(argument, value):
    with pytest.raises(ValueError, match=f"Received: {argument}={value}"):
        TrainingSettings(**{argument: value})


def test_refuses_a_decay_that_ends_before_the_warm_up():
    with pytest.raises(ValueError, match="must be larger than `warmup_steps`"):
        TrainingSettings(warmup_steps=100, decay_steps=100)

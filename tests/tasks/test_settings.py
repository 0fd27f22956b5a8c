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
    rate = TrainingSettings(peak=0.5, warmup_steps=4).learning_rate()
    assert float(rate(0)) == pytest.approx(0.125)
    schedule = TrainingSettings(
        peak=0.5, warmup_steps=10, decay_steps=100
    ).learning_rate()
    rates = [float(schedule(step)) for step in (0, 10, 55, 100)]
    assert rates[1] == pytest.approx(0.5)
    assert 0 < rates[0] < rates[2] < rates[1]
    assert rates[3] == pytest.approx(0.005)


def test_the_moving_average_is_keras_own():
    assert not TrainingSettings().make_optimizer([]).use_ema
    optimizer = TrainingSettings(ema_momentum=0.9).make_optimizer([])
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
        ("row_length", 0),
        ("accumulation_steps", 0),
        ("average_last", -1),
        ("snapshot_steps", 0),
        ("subword_dropout", 1.0),
        ("weight_decay", -0.5),
        ("clip_norm", 0.0),
    ],
)
def test_names_an_argument_out_of_range(argument, value):
    with pytest.raises(ValueError, match=f"Received: {argument}={value}"):
        TrainingSettings(**{argument: value})


def test_refuses_a_decay_that_ends_before_the_warm_up():
    with pytest.raises(ValueError, match="must be larger than `warmup_steps`"):
        TrainingSettings(warmup_steps=100, decay_steps=100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batching": "bins"}, "Received: batching='bins'"),
        ({"optimizer": "sgd"}, "Received: optimizer='sgd'"),
        ({"weight_decay": 0.1}, 'Use optimizer="adamw"'),
        (
            {"ema_momentum": 0.9, "average_last": 5},
            "Leave one of them at 0",
        ),
        (
            {"batching": "buckets", "subword_dropout": 0.1},
            "`subword_dropout` is for packed batches",
        ),
        (
            {"batching": "buckets", "bidirectional_epochs": 2},
            "`bidirectional_epochs` is for packed batches",
        ),
        (
            {"batching": "buckets", "accumulation_steps": 2},
            "`accumulation_steps` is for packed batches",
        ),
    ],
)
def test_refuses_settings_that_do_not_go_together(arguments, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**arguments)

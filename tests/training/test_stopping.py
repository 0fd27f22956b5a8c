"""Trainings stop at the step or the time asked for."""

import time

import keras
import numpy as np
import pytest

from keras_tfm.training.stopping import FailOnNaN
from keras_tfm.training.stopping import StopAfterMinutes
from keras_tfm.training.stopping import StopAfterSteps


def fit(callback, epochs=3, **compile_arguments):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss="mse", **compile_arguments)
    model.optimizer.build(model.trainable_variables)
    x, y = np.ones((10, 3)), np.ones((10, 1))
    model.fit(x, y, 2, epochs=epochs, callbacks=[callback], verbose=0)
    return int(model.optimizer.iterations)


@pytest.mark.parametrize("steps", [1, 3, 5, 7, 11])
def test_stops_after_so_many_steps_also_past_an_epoch(steps):
    assert fit(StopAfterSteps(steps)) == steps


def test_stops_with_several_steps_an_execution():
    assert fit(StopAfterSteps(4), steps_per_execution=2) == 4


def test_counts_the_steps_of_earlier_sessions():
    callback = StopAfterSteps(7)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss="mse")
    model.optimizer.build(model.trainable_variables)
    x, y = np.ones((10, 3)), np.ones((10, 1))
    model.fit(x, y, 2, epochs=1, verbose=0)
    model.fit(x, y, 2, epochs=9, callbacks=[callback], verbose=0)
    assert int(model.optimizer.iterations) == 7


def test_stops_by_the_clock():
    start = time.monotonic()
    fit(StopAfterMinutes(1 / 60), epochs=100_000)
    assert 1 <= time.monotonic() - start < 60


def test_refuses_no_steps_and_no_time():
    with pytest.raises(ValueError, match="Received: steps=0"):
        StopAfterSteps(0)
    with pytest.raises(ValueError, match="Received: minutes=-1"):
        StopAfterMinutes(-1)


def test_a_loss_that_is_a_number_is_no_failure():
    assert fit(FailOnNaN(), epochs=2) == 10


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_not_a_number_is_an_error_that_says_what_to_do(value):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss="mse")
    with pytest.raises(FloatingPointError) as error:
        model.fit(
            np.full((2, 3), value),
            np.ones((2, 1)),
            callbacks=[FailOnNaN()],
            verbose=0,
        )
    assert "after update 1" in str(error.value)
    assert "lower learning rate" in str(error.value)

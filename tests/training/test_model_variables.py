"""Variables are read and replaced by hand, and training goes on from there."""

import keras
import numpy as np
import pytest
from training.tiny_training import assert_same
from training.tiny_training import at_each_step
from training.tiny_training import compiled_model
from training.tiny_training import data
from training.tiny_training import fit
from training.tiny_training import weights_of

from keras_tfm.training.model_variables import kept_values
from keras_tfm.training.model_variables import read_weights
from keras_tfm.training.model_variables import replace_weights


def test_what_a_callback_assigns_is_what_training_goes_on_with():
    model, twin = compiled_model(), compiled_model()
    zeros = [np.zeros_like(weight) for weight in weights_of(model)]

    calls = []

    def reset(model):
        calls.append(model)
        if len(calls) == 2:
            replace_weights(model, zeros)

    fit(model, [at_each_step(reset, model)], 3)
    # The same between two calls of `fit`, as Keras means it.
    fit(twin, [], 2)
    for variable in twin.trainable_variables:
        variable.assign(keras.ops.zeros_like(variable.value))
    fit(twin, [], 3)
    assert_same(weights_of(model), weights_of(twin))
    # From zero, one update of Adam moves no weight much further than its rate.
    assert 0 < np.abs(weights_of(model)[-1]).max() < 0.02


def test_the_weights_are_read_as_they_are_after_each_step():
    model = compiled_model()
    read = []
    look = at_each_step(lambda model: read.append(read_weights(model)), model)
    fit(model, [look], 3)
    assert_same(read[2], weights_of(model))
    # Copies: what comes later does not change them.
    twin = compiled_model()
    fit(twin, [], 2)
    assert_same(read[1], weights_of(twin))


def test_values_put_back_inside_fit_are_those_of_that_step():
    model, twin = compiled_model(), compiled_model()
    zeros = [np.zeros_like(weight) for weight in weights_of(model)]

    def swap(model):
        with kept_values(model, model.trainable_variables):
            replace_weights(model, zeros)
            assert_same(weights_of(model), zeros)

    fit(model, [at_each_step(swap, model)], 3)
    fit(twin, [], 3)
    assert_same(weights_of(model), weights_of(twin))


def test_values_come_back_bit_for_bit_also_after_an_error():
    model = compiled_model()
    before = weights_of(model)

    def fail():
        with kept_values(model, model.trainable_variables):
            replace_weights(model, [np.full_like(w, np.nan) for w in before])
            raise KeyError("halfway")

    with pytest.raises(KeyError, match="halfway"):
        fail()
    assert_same(weights_of(model), before)


def test_values_come_back_after_a_prediction_that_was_broken_off():
    model = compiled_model()
    before = weights_of(model)
    x, _ = data(3)

    class BreakOff(keras.callbacks.Callback):
        def on_predict_batch_end(self, batch, logs=None):
            raise KeyError("halfway")

    def fail():
        with kept_values(model, model.trainable_variables):
            replace_weights(model, [np.zeros_like(w) for w in before])
            model.predict(x, 7, verbose=0, callbacks=[BreakOff()])

    with pytest.raises(KeyError, match="halfway"):
        fail()
    assert_same(read_weights(model), before)


def test_refuses_weights_of_another_number():
    model = compiled_model()
    with pytest.raises(ValueError, match="zip"):
        replace_weights(model, weights_of(model)[:-1])

"""The optimizer's moving average comes and goes inside `fit`."""

from training.tiny_training import assert_same
from training.tiny_training import at_each_step
from training.tiny_training import compiled_model
from training.tiny_training import data
from training.tiny_training import fit
from training.tiny_training import weights_of

from keras_tfm.training.moving_average import MovingAverage

STEPS = 5


def test_what_is_in_place_is_what_fit_would_end_with():
    optimizer = {"use_ema": True, "ema_momentum": 0.5}
    model, x = compiled_model(**optimizer), data(2)[0]
    averages, before = [], []

    def look(model):
        before.append(weights_of(model))
        with MovingAverage().averaged_weights(model):
            averages.append(weights_of(model))
            model.predict(x, verbose=0)
        assert_same(weights_of(model), before[-1])

    fit(model, [at_each_step(look, model)], STEPS)
    for steps in (2, STEPS):
        ended = compiled_model(**optimizer)
        fit(ended, [], steps)
        assert_same(averages[steps - 1], weights_of(ended))
    assert averages[-1][0].tobytes() != before[-1][0].tobytes()


def test_without_an_average_the_weights_stay():
    model = compiled_model()
    fit(model, [], 2)
    before = weights_of(model)
    with MovingAverage().averaged_weights(model):
        assert_same(weights_of(model), before)
    MovingAverage().finish(model)
    assert_same(weights_of(model), before)

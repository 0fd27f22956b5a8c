"""Periodic callbacks act at the same steps, however training is cut up."""

import keras
import numpy as np
import pytest

from keras_tfm.training.periodic_callback import PeriodicCallback


class Recorder(PeriodicCallback):
    def __init__(self, every_steps):
        super().__init__(every_steps)
        self.steps = []
        self.began = []

    def begin(self, step):
        self.began.append(step)

    def act(self, step):
        self.steps.append((step, int(self.model.optimizer.iterations)))


def compiled_model(accumulate=None, **arguments):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(
        0.01, gradient_accumulation_steps=accumulate
    )
    model.compile(optimizer, loss="mse", **arguments)
    model.optimizer.build(model.trainable_variables)
    return model


def fit(model, callbacks, epochs=1):
    x, y = np.ones((10, 3)), np.ones((10, 1))
    model.fit(x, y, 2, epochs=epochs, callbacks=callbacks, verbose=0)


def test_acts_at_multiples_over_epochs_and_sessions():
    model, recorder = compiled_model(), Recorder(3)
    fit(model, [recorder], epochs=2)
    assert recorder.steps == [(3, 3), (6, 6), (9, 9)]
    fit(model, [recorder])
    assert recorder.steps[3:] == [(12, 12), (15, 15)]
    assert recorder.began == [0, 10]


def test_acts_when_it_has_jumped_over_a_multiple():
    recorder = Recorder(3)
    fit(compiled_model(steps_per_execution=2), [recorder], epochs=2)
    # An epoch of 5 batches ends with a single one: 2, 4, 5, then 7, 9, 10.
    assert recorder.steps == [(4, 4), (7, 7), (9, 9)]


def test_counts_updates_rather_than_batches():
    recorder = Recorder(2)
    fit(compiled_model(accumulate=3), [recorder], epochs=3)
    # 15 batches make 5 updates.
    assert recorder.steps == [(2, 2), (4, 4)]


def test_says_after_which_batches_it_acted():
    recorder, acted = Recorder(2), []

    class Look(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            acted.append(recorder.acted)

    fit(compiled_model(), [recorder, Look()])
    assert acted == [False, True, False, True, False]


def test_evaluating_leaves_the_metrics_of_the_training_alone():
    class Evaluate(Recorder):
        def act(self, step):
            self.model.evaluate(np.ones((2, 3)), np.zeros((2, 1)), verbose=0)

    losses = []
    for callback in (Evaluate(2), Recorder(2)):
        keras.utils.set_random_seed(1)
        model = compiled_model()
        fit(model, [callback], epochs=2)
        losses.append(model.history.history["loss"])
    assert losses[0] == losses[1]


def test_refuses_no_steps():
    with pytest.raises(ValueError, match="Received: every_steps=0"):
        Recorder(0)

"""The second pass begins after so many updates, over all sessions."""

import keras
import numpy as np
import pytest
from training.tiny_training import at_each_step
from training.tiny_training import weights_of

from keras_tfm.training.consistency_start import ConsistencyStart


class Passes(keras.Model):
    """A weight that falls by 1 an update, by 2 where there are two passes."""

    def __init__(self):
        super().__init__()
        self.two_passes = True
        self.place = self.add_weight(shape=(1,), initializer="zeros")
        self.built = True

    def call(self, inputs):
        return inputs * self.place * (2.0 if self.two_passes else 1.0)


def compiled_model(**arguments):
    model = Passes()
    model.compile(keras.optimizers.SGD(1.0), loss=lambda y, x: x, **arguments)
    model.optimizer.build(model.trainable_variables)
    return model


def fit(model, update, batches, epochs=1):
    """Return where the weight is after each call of the training step."""
    places = []
    x = np.ones((batches, 1), "float32")
    model.fit(
        x,
        x,
        1,
        epochs=epochs,
        verbose=0,
        callbacks=[
            ConsistencyStart(update),
            at_each_step(lambda m: places.append(-weights_of(m)[0][0]), model),
        ],
    )
    return places


@pytest.mark.parametrize(
    ("update", "places"),
    [(0, [2, 4, 6, 8]), (1, [1, 3, 5, 7]), (3, [1, 2, 3, 5])],
)
def test_it_begins_after_so_many_updates(update, places):
    assert fit(compiled_model(), update, 2, epochs=2) == places


def test_it_goes_on_where_an_earlier_session_was():
    model = compiled_model()
    assert fit(model, 3, 2) == [1, 2]
    assert fit(model, 3, 2) == [3, 5]
    assert fit(model, 3, 1) == [7]


def test_a_model_that_had_begun_is_held_back_in_another_training():
    model = compiled_model()
    fit(model, 0, 1)
    assert fit(model, 3, 3) == [3, 4, 6]


def test_it_counts_several_updates_an_execution():
    model = compiled_model(steps_per_execution=2)
    assert fit(model, 2, 6) == [2, 6, 10]


def test_a_wrong_number_is_named():
    with pytest.raises(ValueError, match="Received: update=-1"):
        ConsistencyStart(-1)

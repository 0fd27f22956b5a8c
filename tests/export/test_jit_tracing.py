"""An error becomes one sentence, with the layer and the line it came from."""

import keras
import numpy as np
import pytest

from keras_tfm.export.jit_tracing import python_state
from keras_tfm.export.jit_tracing import side_effects
from keras_tfm.export.jit_tracing import tracing_finding
from keras_tfm.export.jit_tracing import whole_tracebacks


class Failing(keras.layers.Layer):
    def __init__(self, error, **kwargs):
        super().__init__(**kwargs)
        self.error = error

    def call(self, inputs):
        raise self.error


def found(error):
    model = keras.Sequential([keras.layers.Dense(2), Failing(error, name="f")])
    with whole_tracebacks(), pytest.raises((TypeError, ValueError)) as caught:
        model(np.ones((3, 5), "float32"))
    return tracing_finding(caught.value, model)


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        ("cannot convert to a numpy array", "NumPy asks", "`keras.ops`"),
        ("as a Python `bool` is not", "Python decides", "ops.cond"),
        ("Array slices must be concrete", "A size depends", "mask"),
        ("cuDNN is not supported", "a library's", "use_cudnn=False"),
        ("the dog is away", "fails: the dog is away.", "give `inputs`"),
    ],
)
def test_a_known_error_has_a_reason_and_a_remedy(text, reason, remedy):
    finding = found(ValueError(text))
    assert (finding.layer, finding.operation) == ("f", "`raise self.error`")
    assert reason in finding.reason
    assert remedy in finding.remedy


def test_the_error_before_it_counts():
    try:
        try:
            raise TypeError("cannot convert to a numpy array")
        except TypeError as error:
            raise ValueError("no output shape") from error
    except ValueError as error:
        finding = tracing_finding(error, Failing(error, name="g"))
    assert finding.layer == "g"
    assert "NumPy asks" in finding.reason


def test_whole_tracebacks_are_for_a_while():
    assert keras.config.is_traceback_filtering_enabled()
    with whole_tracebacks():
        assert not keras.config.is_traceback_filtering_enabled()
    assert keras.config.is_traceback_filtering_enabled()


def test_plain_attributes_that_changed_are_side_effects():
    model = keras.Sequential([Failing(ValueError("no"), name="f")])
    model.layers[0].count = 1
    model.layers[0].seen = [1]
    before = python_state(model)
    assert side_effects(before, python_state(model)) == []
    model.layers[0].count = 2
    model.layers[0].seen.append(2)
    effects = side_effects(before, python_state(model))
    assert [f.operation for f in effects] == ["`self.count`", "`self.seen`"]
    assert {f.layer for f in effects} == {"f"}

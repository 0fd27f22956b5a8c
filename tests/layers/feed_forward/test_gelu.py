"""The two forms of GELU, each under its own name."""

import math

import keras
import numpy as np

from keras_tfm.layers import FeedForward
from keras_tfm.layers import gelu_tanh

POINTS = np.linspace(-4.0, 4.0, 41, dtype="float32")


def exact(x):
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def by_tanh(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + math.tanh(inner))


def test_gelu_tanh_is_the_approximation():
    expected = [by_tanh(float(x)) for x in POINTS]
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(gelu_tanh(POINTS)), expected, atol=1e-6
    )


def test_the_keras_name_is_the_exact_form():
    layer = FeedForward(7, activation="gelu")
    expected = [exact(float(x)) for x in POINTS]
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(layer.activation(POINTS)),
        expected,
        atol=1e-6,
    )


def test_the_two_differ_enough_to_spoil_ported_weights():
    gap = max(abs(exact(float(x)) - by_tanh(float(x))) for x in POINTS)
    assert 1e-4 < gap < 1e-3


def test_its_name_survives_a_config():
    assert keras.saving.get_registered_name(gelu_tanh) == "keras_tfm>gelu_tanh"
    config = FeedForward(7, activation=gelu_tanh).get_config()
    assert FeedForward.from_config(config).activation is gelu_tanh

"""Length penalties: the numbers of their papers."""

import numpy as np
import pytest
from keras import ops

from keras_tfm.generation import GNMTLengthPenalty
from keras_tfm.generation import LengthPenalty
from keras_tfm.generation import MeanLengthPenalty
from keras_tfm.generation import NoLengthPenalty

LENGTHS = np.array([1, 2, 7, 50], "int32")


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (GNMTLengthPenalty(), [1.0, (7 / 6) ** 0.6, 2**0.6, (55 / 6) ** 0.6]),
        (GNMTLengthPenalty(-1.0), [1.0, 6 / 7, 0.5, 6 / 55]),
        (GNMTLengthPenalty(0.0), [1.0] * 4),
        (MeanLengthPenalty(), [1.0, 2.0, 7.0, 50.0]),
        (MeanLengthPenalty(0.5), [1.0, 2**0.5, 7**0.5, 50**0.5]),
        (NoLengthPenalty(), [1.0] * 4),
    ],
)
def test_a_penalty_divides_by_its_formula(penalty, expected):
    found = ops.convert_to_numpy(penalty(ops.convert_to_tensor(LENGTHS)))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    one = ops.convert_to_numpy(penalty(ops.convert_to_tensor(7, "int32")))
    assert one.shape == ()
    np.testing.assert_allclose(one, expected[2], rtol=1e-5)


def test_the_numbers_of_wu_et_al():
    found = [float(GNMTLengthPenalty(0.6)(n)) for n in (10, 20, 50)]
    np.testing.assert_allclose(found, [1.733, 2.354, 3.779], atol=5e-4)


def test_a_penalty_must_say_its_divisor():
    with pytest.raises(TypeError, match="abstract"):
        LengthPenalty()

"""Noise by row: where it comes from, and that it looks random."""

import numpy as np
from backend_functions import compiled
from backend_functions import swift
from keras import ops

from keras_tfm.ops.row_noise import row_gumbel
from keras_tfm.ops.row_noise import row_uniform

ROWS, COLUMNS = 997, 211


def draw(rows=None, seed=7, index=3, size=COLUMNS, function=row_uniform):
    rows = np.arange(ROWS, dtype="int32") if rows is None else rows
    run = swift(lambda rows, index: function(seed, rows, index, size))
    index = ops.convert_to_tensor(index, "int32")
    return ops.convert_to_numpy(run(ops.convert_to_tensor(rows), index))


def correlation(a, b):
    return np.corrcoef(a.ravel(), b.ravel())[0, 1]


def test_a_row_has_its_numbers_in_every_batch_and_place():
    together = draw()
    some = np.array([5, 13, 5, 900], "int32")
    np.testing.assert_array_equal(draw(some), together[some])
    np.testing.assert_array_equal(draw(size=17), together[:, :17])


def test_negative_and_great_seeds_are_seeds_too():
    rows = np.array([-1, -(2**31), 2**31 - 1, 0], "int32")
    found = draw(rows, seed=-1)
    assert len(np.unique(found[:, 0])) == 4
    np.testing.assert_array_equal(found, draw(rows, seed=2**32 - 1))


def test_compiled_numbers_are_the_same():
    rows = ops.convert_to_tensor(np.arange(11, dtype="int32"))
    run = compiled(lambda rows: row_uniform(7, rows, 3, COLUMNS))
    found = ops.convert_to_numpy(run(rows))
    np.testing.assert_array_equal(found, draw()[:11])


def test_the_numbers_are_uniform_between_0_and_1():
    found = draw()
    assert found.dtype == np.float32
    assert found.min() > 0
    assert found.max() < 1
    count = found.size
    assert abs(found.mean() - 1 / 2) < 4 * (1 / 12 / count) ** 0.5
    assert abs(found.var() - 1 / 12) < 4 * (1 / 180 / count) ** 0.5
    # 63 degrees of freedom: above 115 once in 14,000 times.
    observed = np.bincount((found * 64).astype(int).ravel(), minlength=64)
    expected = count / 64
    assert ((observed - expected) ** 2 / expected).sum() < 115
    # In each column and each row too, on average.
    for axis, length in ((0, ROWS), (1, COLUMNS)):
        means = (found.mean(axis) - 1 / 2) / (1 / 12 / length) ** 0.5
        assert abs(means).max() < 4.7
        assert 0.8 < means.std() < 1.2


def test_neighbours_have_nothing_in_common():
    found = draw()
    # Of so many pairs: 4.5 standard deviations.
    most = 4.5 / found.size**0.5
    assert abs(correlation(found[1:], found[:-1])) < most
    assert abs(correlation(found[:, 1:], found[:, :-1])) < most
    assert abs(correlation(found, draw(index=4))) < most
    assert abs(correlation(found, draw(seed=8))) < most
    # What one row has at a step no other has at the next, shifted or not.
    later = draw(index=4)
    assert len(np.unique(found[:, 0])) == ROWS
    assert not np.isin(found[:, 0], later[:, :2]).any()


def test_gumbel_noise_has_its_mean_and_variance():
    found = draw(function=row_gumbel)
    assert np.isfinite(found).all()
    assert abs(found.mean() - np.euler_gamma) < 0.01
    assert abs(found.var() - np.pi**2 / 6) < 0.03
    np.testing.assert_allclose(
        found, -np.log(-np.log(draw().astype("float64"))), rtol=1e-4, atol=1e-5
    )

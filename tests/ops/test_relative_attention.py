"""Vectors of distances against the sums of the paper, one at a time."""

import numpy as np
import pytest
from backend_functions import output_and_gradients
from keras import ops

from keras_tfm.ops.relative_attention import relative_scores
from keras_tfm.ops.relative_attention import relative_values

B, H, T, S, D = 2, 3, 5, 11, 7
rng = np.random.default_rng(3)
QUERY = rng.normal(size=(B, H, T, D)).astype("float32")
WEIGHTS = rng.random((B, H, T, S)).astype("float32")
each_reach = pytest.mark.parametrize("farthest", [1, 2, 4, 19])
each_start = pytest.mark.parametrize("start", [0, 3, 6])


def table_of(farthest):
    return rng.normal(size=(2 * farthest + 1, D)).astype("float32")


def row_of(query, key, farthest):
    return max(-farthest, min(farthest, key - query)) + farthest


@each_reach
@each_start
def test_scores_are_those_of_the_paper(farthest, start):
    table = table_of(farthest)
    found = relative_scores(
        QUERY, table, np.arange(start, start + T), np.arange(S)
    )
    expected = np.zeros((B, H, T, S))
    for t in range(T):
        for s in range(S):
            vector = table[row_of(start + t, s, farthest)]
            expected[:, :, t, s] = QUERY[:, :, t] @ vector / np.sqrt(D)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@each_reach
@each_start
def test_values_are_those_of_the_paper(farthest, start):
    table = table_of(farthest)
    found = relative_values(WEIGHTS, table, np.arange(start, start + T))
    expected = np.zeros((B, H, T, D))
    for t in range(T):
        for s in range(S):
            vector = table[row_of(start + t, s, farthest)]
            expected[:, :, t] += WEIGHTS[:, :, t, s, None] * vector
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("jit", [False, True])
def test_the_gradients_are_those_of_the_sums(jit):
    table = table_of(2)
    rows = np.array([[row_of(t, s, 2) for s in range(S)] for t in range(T)])

    def ours(query, weights, table):
        scores = relative_scores(query, table, np.arange(T), np.arange(S))
        return relative_values(weights * scores, table, np.arange(T))

    def summed(query, weights, table):
        vectors = ops.take(table * 1.0, rows, axis=0)
        scores = ops.einsum("bhtd,tsd->bhts", query, vectors) / np.sqrt(D)
        return ops.einsum("bhts,tsd->bhtd", weights * scores, vectors)

    tensors = [QUERY, WEIGHTS, table]
    upstream = rng.normal(size=(B, H, T, D)).astype("float32")
    output, found = output_and_gradients(ours, upstream, tensors, jit)
    expected, wanted = output_and_gradients(summed, upstream, tensors, jit)
    np.testing.assert_allclose(output, expected, atol=1e-5)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)

"""Compiled functions of ids, and batches of a few shapes."""

import numpy as np
import pytest
from keras import ops

from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.batched_calls import call_in_batches
from keras_tfm.tasks.batched_calls import compile_function


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
def test_every_row_comes_back_to_its_place(count):
    shapes = []

    def copy(ids, others):
        shapes.append(ids.shape)
        assert ids.shape == others.shape
        return ids, others.sum(axis=1)

    rng = np.random.default_rng(count)
    columns = [
        [
            rng.integers(3, 9, rng.integers(0, 11)).astype("int32")
            for _ in range(count)
        ]
        for _ in range(2)
    ]
    found = {}
    for places, results in call_in_batches(copy, columns, (1, 4), (5, 11), 0):
        found.update(zip(places, zip(*results, strict=True), strict=True))
    assert sorted(found) == list(range(count))
    for place, (row, other) in enumerate(zip(*columns, strict=True)):
        ids, total = found[place]
        assert [i for i in ids.tolist() if i] == row.tolist()
        assert total == other.sum()
    assert set(shapes) <= {(1, 5), (1, 11), (4, 5), (4, 11)}


def test_columns_of_different_lengths_share_the_longer_one():
    shapes = []

    def watch(ids, others):
        shapes.append((ids.shape, others.shape))
        return (ids,)

    columns = [[np.array([5])], [np.arange(1, 8)]]
    list(call_in_batches(watch, columns, (1,), (5, 11), 0))
    assert shapes == [((1, 11), (1, 11))]


def test_a_compiled_function_sees_the_weights_of_the_call():
    model = Transformer(
        11, num_layers=1, hidden_dim=8, intermediate_dim=13, num_heads=2
    )
    traces = []

    def first_weights(ids):
        traces.append(1)
        table = ops.convert_to_tensor(model.source_embedding.embeddings)
        return ops.take(table, ids[:, 0], axis=0), ids

    run = compile_function(model, first_weights)
    ids = np.array([[5, 4, 2]], "int32")
    before, same = run(ids)
    assert isinstance(before, np.ndarray)
    np.testing.assert_array_equal(same, ids)
    weights = model.source_embedding.embeddings
    weights.assign(weights * 3.0)
    after, _ = run(ids)
    np.testing.assert_allclose(after, 3.0 * before, rtol=1e-6)
    assert len(traces) == 1


def test_a_single_result_comes_in_a_tuple():
    model = Transformer(
        11, num_layers=1, hidden_dim=8, intermediate_dim=13, num_heads=2
    )
    (total,) = compile_function(model, lambda a, b: a + b, 2)(
        np.array([[5]], "int32"), np.array([[6]], "int32")
    )
    assert total.tolist() == [[11]]

"""Writers: a model and a generator joined, and batches of a few shapes."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.decoding import make_writer
from keras_tfm.tasks.decoding import write_in_batches


@pytest.fixture
def model():
    model = Transformer(
        11, num_layers=1, hidden_dim=8, intermediate_dim=13, num_heads=2
    )
    rng = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def test_a_row_of_padding_is_not_decoded(model):
    write = make_writer(model, GreedyGenerator(max_length=7))
    ids, scores = write(ops.convert_to_tensor([[5, 4, 2], [0, 0, 0]], "int32"))
    assert np.any(np.asarray(ids)[0] != 0)
    assert not np.any(np.asarray(ids)[1])
    assert float(scores[1]) == 0


def test_greedy_choices_are_the_models_own(model):
    write = make_writer(model, GreedyGenerator(max_length=7))
    source = np.array([[5, 4, 9, 2]], "int32")
    ids = np.asarray(write(ops.convert_to_tensor(source))[0])[0]
    written = [1]
    for token in ids:
        logits = model(
            {"source_ids": source, "target_ids": np.array([written])}
        )
        assert int(np.argmax(logits[0, -1])) == token
        written.append(int(token))
        if token == 2:
            break


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
def test_every_row_comes_back_to_its_place(count):
    shapes = []

    def copy(ids):
        shapes.append(ids.shape)
        return ids, None

    rng = np.random.default_rng(count)
    rows = [
        rng.integers(3, 9, rng.integers(0, 10)).astype("int32")
        for _ in range(count)
    ]
    found = {}
    for places, ids in write_in_batches(
        copy, rows, (1, 4), (5, 11), end_id=2, pad_id=0
    ):
        found.update(zip(places, ids.tolist(), strict=True))
    assert sorted(found) == list(range(count))
    for place, row in enumerate(rows):
        expected = [*row.tolist(), 2] if len(row) else []
        assert [i for i in found[place] if i] == expected
    assert set(shapes) <= {(1, 5), (1, 11), (4, 5), (4, 11)}


def test_the_weights_are_those_at_the_time_of_the_call(model):
    write = make_writer(model, GreedyGenerator(max_length=3))
    source = ops.convert_to_tensor([[5, 4, 2]], "int32")
    before = np.asarray(write(source)[1])
    for weight in model.weights:
        weight.assign(weight * 0.5)
    assert keras.ops.all(write(source)[1] != before)

"""Packed rows teach a model what the same pairs teach it alone."""

import functools

import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import gradients
from backend_functions import swift
from keras import ops
from models.transformer.made import V_TARGET
from models.transformer.made import fresh

from keras_tfm.models.packed_model import packed_model
from keras_tfm.training.losses import SmoothedCrossEntropy

# Source and target lengths of five pairs, and the rows they lie in.
LENGTHS = [(3, 2), (1, 5), (4, 4), (7, 3), (2, 6)]
ROWS = [[0, 1, 2], [3], [4], []]
S, T = 11, 13
# How embeddings are tied, and whether the norm comes first.
KINDS = [("all", False), (None, True)]


def pairs():
    generator = np.random.default_rng(3)
    return [
        [generator.integers(1, V_TARGET, n) for n in (s, t, t)]
        for s, t in LENGTHS
    ]


def alone():
    """Each pair in a row of its own: inputs and labels."""
    arrays = [np.zeros((len(LENGTHS), n), "int32") for n in (S, T, T)]
    for index, pair in enumerate(pairs()):
        for array, ids in zip(arrays, pair, strict=True):
            array[index, : len(ids)] = ids
    source, target, labels = arrays
    return {"source_ids": source, "target_ids": target}, labels


def packed():
    """The same pairs in the rows of `ROWS`."""
    kinds = ("source", "target", "label")
    ids = {k: np.zeros((len(ROWS), S if k == "source" else T), "int32")
           for k in kinds}  # fmt: skip
    segments = {k: np.zeros_like(ids[k]) for k in kinds}
    for row, members in enumerate(ROWS):
        for number, member in enumerate(members, start=1):
            for kind, values in zip(kinds, pairs()[member], strict=True):
                begin = np.count_nonzero(segments[kind][row])
                place = slice(begin, begin + len(values))
                ids[kind][row, place] = values
                segments[kind][row, place] = number
    inputs = {f"{k}_ids": ids[k] for k in ("source", "target")}
    for side in ("source", "target"):
        inputs[f"{side}_segments"] = segments[side]
    return inputs, ids["label"]


def tensors(arrays):
    return {k: ops.convert_to_tensor(v) for k, v in arrays.items()}


def loss_and_gradients(network, inputs, labels):
    loss = SmoothedCrossEntropy(0.1)
    inputs = tensors(inputs)

    def scaled(scale):
        return scale * loss(labels, network(inputs, training=False))

    # A scaled loss grows with its scale by itself: one program gives all.
    (value,), found = gradients(
        scaled, [np.float32(1)], network.trainable_variables
    )
    paths = [v.path for v in network.trainable_variables]
    return float(value), dict(zip(paths, found, strict=True))


@functools.cache
def models(tie_embeddings, normalize_first):
    model = fresh(tie_embeddings, normalize_first)
    return model, packed_model(model)


@functools.cache
def both(*kind):
    model, network = models(*kind)
    return (
        loss_and_gradients(model, *alone()),
        loss_and_gradients(network, *packed()),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_packed_pairs_have_the_loss_of_the_same_pairs_alone(kind):
    (expected, _), (found, _) = both(*kind)
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_pairs_give_the_gradients_of_the_same_pairs_alone(kind):
    (_, expected), (_, found) = both(*kind)
    assert set(found) == set(expected)
    for path, gradient in expected.items():
        assert np.abs(gradient).max() > 1e-4, path
        np.testing.assert_allclose(found[path], gradient, atol=1e-5)


def test_a_neighbour_in_the_row_changes_nothing():
    _, network = models(*KINDS[0])
    call = compiled(lambda x: network(x, training=False))
    inputs, _ = packed()
    before = np.asarray(call(tensors(inputs)))
    changed = {k: v.copy() for k, v in inputs.items()}
    for side in ("source", "target"):
        second = inputs[f"{side}_segments"] == 2
        changed[f"{side}_ids"][second] = 1 + (
            changed[f"{side}_ids"][second] % (V_TARGET - 1)
        )
    after = np.asarray(call(tensors(changed)))
    others = inputs["target_segments"] != 2
    np.testing.assert_array_equal(after[others], before[others])
    assert np.abs(after - before)[~others].max() > 1e-3


def test_it_trains_the_very_weights_of_the_model():
    model, network = models(*KINDS[0])
    own = {id(v) for v in model.variables}
    assert {id(v) for v in network.variables} == own


def test_its_dropout_is_that_of_the_model():
    _, network = models(*KINDS[0])
    inputs, _ = packed()
    inputs = tensors(inputs)
    trained = [v.value for v in network.trainable_variables]
    streams = [v.value for v in network.non_trainable_variables]
    step = swift(
        lambda streams: network.stateless_call(
            trained, streams, inputs, training=True
        )
    )
    once, streams = step(streams)
    again, _ = step(streams)
    once, again = (np.asarray(x) for x in (once, again))
    assert np.abs(once - again).max() > 1e-3

"""The loss of two passes that are to agree, against torch's divergences."""

import keras
import numpy as np
import pytest
import torch
from backend_functions import compiled
from backend_functions import gradients

from keras_tfm.ops.consistency_loss import consistency_loss
from keras_tfm.ops.vocabulary_loss import vocabulary_loss

B, T, E, V = 3, 5, 7, 11
ALPHA, SMOOTHING = 5.0, 0.1


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


def inputs(seed=0):
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(2, B, T, E)).astype("float32")
    table = generator.normal(size=(V, E)).astype("float32")
    weights = generator.uniform(0.1, 2.0, (B, T)).astype("float32")
    weights[0, 3:] = weights[2, 0] = 0.0
    return vectors, table, generator.integers(0, V, (B, T)), weights


def of_torch(vectors, table, labels, weights):
    """Return the loss and its gradients: R-Drop's, halved."""
    nn = torch.nn.functional
    theirs = [torch.tensor(x, requires_grad=True) for x in (vectors, table)]
    first, second = nn.linear(*theirs).flatten(1, 2)
    ids = torch.tensor(labels).flatten()
    entropy = sum(
        nn.cross_entropy(x, ids, label_smoothing=SMOOTHING, reduction="none")
        for x in (first, second)
    )
    first, second = (nn.log_softmax(x, -1) for x in (first, second))
    apart = sum(
        nn.kl_div(x, y, reduction="none", log_target=True).sum(-1)
        for x, y in ((first, second), (second, first))
    )
    losses = entropy / 2 + ALPHA * apart / 4
    loss = (losses * torch.tensor(weights).flatten()).sum()
    loss.backward()
    return float(loss.detach()), [x.grad.numpy() for x in theirs]


@pytest.mark.parametrize("chunk_size", [1, 4, None])
def test_loss_and_gradients_are_those_of_torch(chunk_size):
    vectors, table, labels, weights = inputs()

    def ours(vectors, table):
        return consistency_loss(
            vectors, table, labels, weights, ALPHA, SMOOTHING,
            chunk_size=chunk_size,
        )[0]  # fmt: skip

    expected, wanted = of_torch(*inputs())
    assert float(ours(vectors, table)) == pytest.approx(expected, rel=1e-5)
    found = gradients(ours, [vectors, table], jit=True)[0]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_passes_that_agree_have_the_loss_of_one():
    vectors, table, labels, weights = inputs()
    vectors[1] = vectors[0]
    found = consistency_loss(vectors, table, labels, weights, ALPHA)
    expected = vocabulary_loss(vectors[0], table, labels, weights)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(array(one), array(other), rtol=1e-5)


def test_what_is_told_of_a_position_is_the_mean_of_both_passes():
    vectors, table, labels, weights = inputs()
    _, surprisals, hits = consistency_loss(
        vectors, table, labels, weights, ALPHA, SMOOTHING, chunk_size=4
    )
    both = [vocabulary_loss(x, table, labels, weights)[1:] for x in vectors]
    for found, *halves in zip((surprisals, hits), *both, strict=True):
        expected = sum(map(array, halves)) / 2
        np.testing.assert_allclose(array(found), expected, rtol=1e-5)


def test_what_has_no_weight_counts_for_nothing_whatever_it_holds():
    vectors, table, labels, weights = inputs()
    spoilt = np.where(weights[..., None] == 0, np.nan, vectors)

    def loss(vectors, table):
        return consistency_loss(vectors, table, labels, weights, ALPHA)[0]

    for found, expected in zip(
        gradients(loss, [spoilt, table])[0],
        gradients(loss, [vectors, table])[0],
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_length_that_is_not_known_before_will_do():
    vectors, table, labels, weights = inputs()
    function = compiled(
        lambda *x: consistency_loss(*x, ALPHA, SMOOTHING, chunk_size=4)[0]
    )
    for length in (3, 5):
        cut = (
            vectors[:, :, :length],
            table,
            labels[:, :length],
            weights[:, :length],
        )
        tensors = [keras.ops.convert_to_tensor(x) for x in cut]
        assert float(function(*tensors)) == pytest.approx(
            of_torch(*cut)[0], rel=1e-5
        )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"consistency": 0.0}, "consistency"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"flavour": "vanilla"}, "flavour"),
        ({"chunk_size": 0}, "chunk_size"),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        consistency_loss(*inputs(), **{"consistency": ALPHA, **wrong})

"""Smoothed cross-entropy against one-hot targets, loops and torch."""

import keras
import numpy as np
import pytest
import torch
from backend_functions import gradients
from hypothesis import given
from hypothesis import strategies as st

from keras_tfm.ops.cross_entropy import smoothed_cross_entropy
from keras_tfm.ops.cross_entropy import token_mean
from keras_tfm.ops.cross_entropy import token_weights

B, T, V = 2, 5, 7
SMOOTHING = [0.0, 0.1, 0.3]
FLAVOURS = ["uniform", "tensor2tensor"]


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


def inputs(seed=0, scale=3.0):
    generator = np.random.default_rng(seed)
    logits = scale * generator.normal(size=(B, T, V))
    return generator.integers(0, V, (B, T)), logits.astype("float32")


def by_one_hot(labels, logits, smoothing, flavour):
    """-sum(target x log p) in float64, with the target written out."""
    logits = logits.astype("float64")
    losses = np.zeros(labels.shape)
    for place in np.ndindex(*labels.shape):
        target = np.zeros(logits.shape[-1])
        for token in range(len(target)):
            right = token == labels[place]
            if flavour == "uniform":
                target[token] = smoothing / len(target)
                target[token] += (1 - smoothing) * right
            elif right:
                target[token] = 1 - smoothing
            else:
                target[token] = smoothing / (len(target) - 1)
        assert abs(target.sum() - 1) < 1e-12
        row = logits[place] - logits[place].max()
        losses[place] = -(target * (row - np.log(np.exp(row).sum()))).sum()
    return losses


@pytest.mark.parametrize("smoothing", SMOOTHING)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_loss_is_that_of_smoothed_one_hot_targets(smoothing, flavour):
    labels, logits = inputs()
    found = smoothed_cross_entropy(labels, logits, smoothing, flavour)
    assert tuple(found.shape) == (B, T)
    np.testing.assert_allclose(
        array(found), by_one_hot(labels, logits, smoothing, flavour), rtol=1e-5
    )


@given(seed=st.integers(0, 2**16), smoothing=st.floats(0, 0.9))
def test_any_smoothing_gives_the_one_hot_loss(seed, smoothing):
    labels, logits = inputs(seed)
    for flavour in FLAVOURS:
        np.testing.assert_allclose(
            array(smoothed_cross_entropy(labels, logits, smoothing, flavour)),
            by_one_hot(labels, logits, smoothing, flavour),
            rtol=1e-4,
            atol=1e-5,
        )


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_the_uniform_flavour_is_that_of_torch(smoothing):
    labels, logits = inputs()
    theirs = torch.tensor(logits.reshape(-1, V), requires_grad=True)
    expected = torch.nn.functional.cross_entropy(
        theirs,
        torch.tensor(labels.reshape(-1)),
        label_smoothing=smoothing,
        reduction="none",
    )
    expected.sum().backward()
    found = smoothed_cross_entropy(labels, logits, smoothing)
    np.testing.assert_allclose(
        array(found).reshape(-1), expected.detach().numpy(), atol=1e-5
    )
    (by_logits,), _ = gradients(
        lambda x: keras.ops.sum(smoothed_cross_entropy(labels, x, smoothing)),
        [logits],
    )
    np.testing.assert_allclose(
        by_logits.reshape(-1, V), theirs.grad.numpy(), atol=1e-6
    )


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_the_uniform_flavour_is_that_of_keras(smoothing):
    labels, logits = inputs()
    expected = keras.losses.categorical_crossentropy(
        np.eye(V, dtype="float32")[labels],
        keras.ops.convert_to_tensor(logits),
        from_logits=True,
        label_smoothing=smoothing,
    )
    found = smoothed_cross_entropy(labels, logits, smoothing)
    np.testing.assert_allclose(array(found), array(expected), atol=1e-5)


def test_the_flavours_differ():
    labels, logits = inputs()
    uniform, other = (
        array(smoothed_cross_entropy(labels, logits, 0.1, flavour))
        for flavour in FLAVOURS
    )
    assert np.abs(uniform - other).min() > 1e-4


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_labels_out_of_range_do_no_harm_where_the_weight_is_zero(flavour):
    labels, logits = inputs()
    weights = np.ones((B, T))
    weights[0, 2] = weights[1, 4] = 0
    expected = array(
        smoothed_cross_entropy(labels, logits, 0.1, flavour, weights)
    )
    labels[0, 2], labels[1, 4] = -100, V + 3
    found = array(smoothed_cross_entropy(labels, logits, 0.1, flavour, weights))
    np.testing.assert_array_equal(found, expected)
    assert found[0, 2] == found[1, 4] == 0.0


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nan_logits_of_weight_zero_reach_nothing(flavour, jit):
    labels, logits = inputs()
    weights = np.ones((B, T), "float32")
    weights[0, 2] = weights[1, 4] = 0
    dirty = logits.copy()
    dirty[0, 2], dirty[1, 4] = np.nan, np.inf

    def total(logits):
        return keras.ops.sum(
            smoothed_cross_entropy(labels, logits, 0.1, flavour, weights)
        )

    np.testing.assert_array_equal(array(total(dirty)), array(total(logits)))
    (by_dirty,), _ = gradients(total, [dirty], jit=jit)
    (by_clean,), _ = gradients(total, [logits], jit=jit)
    np.testing.assert_array_equal(by_dirty, by_clean)
    assert (by_dirty[0, 2] == 0.0).all()
    assert (by_dirty[1, 4] == 0.0).all()
    assert (by_dirty[0, 0] != 0.0).any()


def test_a_weight_multiplies_the_loss_of_its_token():
    labels, logits = inputs()
    weights = np.random.default_rng(5).random((B, T)).astype("float32")
    plain = array(smoothed_cross_entropy(labels, logits, 0.1))
    found = smoothed_cross_entropy(labels, logits, 0.1, weights=weights)
    np.testing.assert_allclose(array(found), plain * weights, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_logits_get_a_float32_loss(dtype):
    labels, logits = inputs(scale=20.0)
    half = keras.ops.cast(logits, dtype)
    found = smoothed_cross_entropy(labels, half, 0.1)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    rounded = array(keras.ops.cast(half, "float32"))
    np.testing.assert_allclose(
        array(found), by_one_hot(labels, rounded, 0.1, "uniform"), rtol=1e-5
    )


def test_huge_logits_do_not_overflow():
    labels = np.array([[0, 1]])
    logits = np.array([[[1e4, -1e4], [1e4, -1e4]]], "float32")
    found = array(smoothed_cross_entropy(labels, logits))
    np.testing.assert_allclose(found, [[0.0, 2e4]], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0,), r"`label_smoothing` must be a number in \[0, 1\)"),
        ((-0.1,), "Received: label_smoothing=-0.1"),
        ((0.1, "unifrom"), "`flavour` must be one of .* mean 'uniform'"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        smoothed_cross_entropy(*inputs(), *arguments)


def test_the_mean_counts_weights_not_places():
    values = np.array([[3.0, 1.0, 0.0]])
    assert float(token_mean(values, [[1, 1, 0]])) == 2.0
    assert float(token_mean(values, [[0.5, 1.5, 0.0]])) == 2.0


def test_the_mean_of_nothing_is_zero_and_so_is_its_gradient():
    zeros = np.zeros((2, 3), "float32")
    assert float(token_mean(zeros, zeros)) == 0.0
    (by_values,), _ = gradients(lambda x: token_mean(x, zeros), [zeros])
    assert (by_values == 0.0).all()


def test_weights_are_zero_for_padding_and_follow_the_samples():
    labels = np.array([[5, 0], [3, 2]])
    for sample_weight, expected in [
        (None, [[1, 0], [1, 1]]),
        ([0.5, 2.0], [[0.5, 0], [2, 2]]),
        ([[0.5, 9.0], [0.0, 3.0]], [[0.5, 0], [0, 3]]),
    ]:
        found = token_weights(labels, sample_weight=sample_weight)
        np.testing.assert_array_equal(array(found), expected)

"""with_token_weights: several batches count as one large one."""

import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.data.token_weights import with_token_weights

# Batches of labels `(3, 5)` with these numbers of real tokens.
COUNTS = [15, 2, 7, 0, 11, 1, 13]
SHAPE = (3, 5)


def labels(pad_id=0):
    rows = []
    for number, count in enumerate(COUNTS):
        row = np.full(15, pad_id, "int32")
        row[:count] = 10 + number
        rows.append(np.random.default_rng(number).permutation(row))
    return np.array(rows).reshape(-1, *SHAPE)


def weighted(num_batches, pad_id=0):
    """Return the inputs, labels and weights of every batch."""
    found = labels(pad_id)
    dataset = tf.data.Dataset.from_tensor_slices(
        ({"a": found + 100, "b": found + 200}, found)
    )
    return [
        (inputs, y.numpy(), weights.numpy())
        for inputs, y, weights in with_token_weights(
            dataset, num_batches, pad_id
        )
    ]


@pytest.mark.parametrize("num_batches", [1, 2, 3])
@pytest.mark.parametrize("pad_id", [0, 4])
def test_the_weights_of_a_group_are_equal_and_sum_to_its_size(
    num_batches, pad_id
):
    batches = weighted(num_batches, pad_id)
    assert len(batches) == len(COUNTS) // num_batches * num_batches
    for begin in range(0, len(batches), num_batches):
        group = batches[begin : begin + num_batches]
        real = np.concatenate([y[y != pad_id] for _, y, _ in group])
        weights = np.concatenate([w[y != pad_id] for _, y, w in group])
        padding = np.concatenate([w[y == pad_id] for _, y, w in group])
        assert (padding == 0).all()
        if len(real):
            assert weights.sum() == pytest.approx(num_batches, abs=1e-5)
            assert np.ptp(weights) == 0


@pytest.mark.parametrize("num_batches", [2, 3])
def test_the_mean_of_weighted_sums_is_the_mean_over_all_tokens(num_batches):
    losses = np.random.default_rng(5).normal(size=(len(COUNTS), *SHAPE))
    batches = weighted(num_batches)
    for begin in range(0, len(batches), num_batches):
        group = range(begin, begin + num_batches)
        sums = [(losses[i] * batches[i][2]).sum() for i in group]
        tokens = [losses[i][labels()[i] != 0] for i in group]
        assert np.mean(sums) == pytest.approx(np.concatenate(tokens).mean())


def test_inputs_and_labels_stay_as_they_are_and_in_order():
    batches = weighted(3)
    assert len(batches) == 6
    for expected, (inputs, found, weights) in zip(
        labels(), batches, strict=False
    ):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(inputs["a"], expected + 100)
        np.testing.assert_array_equal(inputs["b"], expected + 200)
        assert weights.shape == SHAPE
        assert weights.dtype == np.float32


def test_batches_of_padding_alone_weigh_nothing():
    padding = tf.zeros((2, *SHAPE), tf.int32)
    dataset = tf.data.Dataset.from_tensor_slices((padding, padding))
    for num_batches in (1, 2):
        for _, _, weights in with_token_weights(dataset, num_batches):
            np.testing.assert_array_equal(weights, np.zeros(SHAPE))


def test_a_dataset_without_end_stays_without_end():
    dataset = tf.data.Dataset.from_tensor_slices((labels(), labels()))
    endless = with_token_weights(dataset.repeat(), 2)
    # The last batch of the first round is weighed with the first one again.
    weights = [w.numpy() for _, _, w in endless.take(9)]
    assert weights[6].max() == pytest.approx(2 / (COUNTS[-1] + COUNTS[0]))
    assert weights[7].max() == weights[6].max()
    spec = endless.element_spec[2]
    assert spec.shape.as_list() == list(SHAPE)


def test_no_batches_make_no_update():
    dataset = tf.data.Dataset.from_tensor_slices((labels(), labels()))
    with pytest.raises(ValueError, match=r"`num_batches`.*Received.*0"):
        with_token_weights(dataset, 0)

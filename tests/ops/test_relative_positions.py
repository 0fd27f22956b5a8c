"""Scores of distances against the code of the models they come from."""

import numpy as np
import pytest
import torch
from keras import ops

from keras_tfm.ops.relative_positions import alibi_scores
from keras_tfm.ops.relative_positions import alibi_slopes
from keras_tfm.ops.relative_positions import distances_between
from keras_tfm.ops.relative_positions import relative_buckets
from keras_tfm.ops.relative_positions import scores_of_pairs

DISTANCES = np.arange(-307, 308)


def test_a_distance_is_key_minus_query():
    found = ops.convert_to_numpy(distances_between([3, 5], [0, 4, 9]))
    np.testing.assert_array_equal(found, [[-3, 1, 6], [-5, -1, 4]])


def test_each_pair_gets_the_score_of_its_distance():
    by_distance = np.arange(3 * 11).reshape(3, 11)
    found = ops.convert_to_numpy(scores_of_pairs(by_distance, 5, 7))
    for query in range(5):
        for key in range(7):
            expected = by_distance[:, key - query + 4]
            np.testing.assert_array_equal(found[:, query, key], expected)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (8, 20), (32, 57), (4, 300)]
)
def test_buckets_are_those_of_t5(bidirectional, num_buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    expected = T5Attention._relative_position_bucket(
        torch.tensor(DISTANCES), bidirectional, num_buckets, max_distance
    )
    found = relative_buckets(
        DISTANCES, num_buckets, max_distance, bidirectional
    )
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


def test_buckets_by_hand():
    # Two of 4 are for keys behind: 0 alone, then all from 1 on.
    found = relative_buckets([-9, -1, 0, 1, 9], 4, 8)
    assert ops.convert_to_numpy(found).tolist() == [1, 1, 0, 3, 3]
    found = relative_buckets([-9, -1, 0, 1, 9], 2, 8, bidirectional=False)
    assert ops.convert_to_numpy(found).tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 128), "even and at least 4.*num_buckets=5, bidirectional=True"),
        ((2, 128), "even and at least 4.*num_buckets=2"),
        ((1, 128, False), "at least 2.*num_buckets=1, bidirectional=False"),
        ((32, 8), "must exceed 8.*max_distance=8, num_buckets=32"),
        ((0, 128), "`num_buckets`"),
    ],
)
def test_wrong_numbers_of_buckets_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        relative_buckets(DISTANCES, *arguments)


@pytest.mark.parametrize("num_heads", [1, 2, 3, 8, 11, 12, 16])
def test_slopes_are_those_of_bloom(num_heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    keys = 7
    bias = build_alibi_tensor(
        torch.ones((1, keys)), num_heads, torch.float32
    ).reshape(num_heads, keys)
    # There every key has its position; what differs is constant in a row.
    expected = bias.numpy() - bias.numpy()[:, -1:]
    distances = np.arange(keys) - (keys - 1)
    np.testing.assert_allclose(
        alibi_scores(distances, num_heads), expected, atol=1e-6
    )


def test_eight_slopes_are_those_of_the_paper():
    expected = [1 / 2**power for power in range(1, 9)]
    np.testing.assert_allclose(alibi_slopes(8), expected)


def test_keys_on_both_sides_fall_alike():
    distances = np.arange(-6, 7).reshape(1, 13)
    scores = ops.convert_to_numpy(alibi_scores(distances, 3))
    assert scores.shape == (3, 1, 13)
    np.testing.assert_array_equal(scores, scores[..., ::-1])
    assert (np.diff(scores[:, 0, 6:], axis=-1) < 0).all()

"""What a call says of its rows, and what it leaves out."""

import numpy as np
import pytest
from generation.toy_steps import array
from keras import ops

from keras_tfm.generation import BeamSearchGenerator
from keras_tfm.generation import GreedyGenerator
from keras_tfm.generation.rows import Rows

ACTIVE = [True, False, True]


def rows(generator=None, prefix=None, max_lengths=None, seeds=None):
    generator = generator or GreedyGenerator(5, pad_id=9)
    return Rows.of_call(generator, ACTIVE, prefix, max_lengths, seeds, None)


def test_a_row_may_be_as_long_as_all_and_its_seed_is_its_number():
    found = rows()
    assert array(found.active).tolist() == ACTIVE
    assert array(found.limits).tolist() == [5, 5, 5]
    assert array(found.seeds).tolist() == [0, 1, 2]
    assert found.forced(0) is None


@pytest.mark.parametrize(
    ("given", "limits"),
    [([2, 7, 0], [2, 5, 1]), (3, [3, 3, 3]), (np.int64([1, 2, 3]), [1, 2, 3])],
)
def test_lengths_stay_between_1_and_the_greatest(given, limits):
    assert array(rows(max_lengths=given).limits).tolist() == limits


def test_a_prefix_is_filled_up_with_padding():
    found = rows(prefix=[[3, 4], [9, 9], [6, 9]])
    read = [
        array(found.forced(ops.convert_to_tensor(i))).ravel() for i in range(5)
    ]
    assert np.array(read).T.tolist() == [
        [3, 4, 9, 9, 9],
        [9, 9, 9, 9, 9],
        [6, 9, 9, 9, 9],
    ]


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ([3, 4], r"shape \(batch, prefix_length\). Received: \(2,\)"),
        (
            np.full((3, 6), 4),
            "no longer than max_length=5. Received: 6 tokens. Cut it, or make "
            "the generator with a larger `max_length`",
        ),
    ],
)
def test_a_prefix_of_a_wrong_shape_is_refused(prefix, message):
    with pytest.raises(ValueError, match=message):
        rows(prefix=prefix)


def test_coverage_needs_the_source():
    generator = BeamSearchGenerator(5, 2, coverage_penalty=0.2)
    with pytest.raises(ValueError, match="Pass `source_mask`, boolean"):
        rows(generator)

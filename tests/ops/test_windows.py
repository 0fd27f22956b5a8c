"""Windows, position by position."""

import keras
import numpy as np
import pytest
from keras import ops
from window_cases import WINDOWS
from window_cases import visible_in

from keras_tfm.ops.windows import Band
from keras_tfm.ops.windows import OwnAndPreviousBlock
from keras_tfm.ops.windows import OwnBlock
from keras_tfm.ops.windows import Window

LENGTH = 23


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_it_shows_what_it_says(window):
    positions = np.arange(LENGTH)
    found = ops.convert_to_numpy(
        window.visible(
            ops.convert_to_tensor(positions[:, None]),
            ops.convert_to_tensor(positions[None]),
        )
    )
    for query in positions:
        for key in positions:
            assert found[query, key] == visible_in(window, query, key)
            if found[query, key]:
                # What is visible lies in the blocks that are looked at.
                size = window.block_length
                blocks = key // size - query // size
                assert -window.blocks_before <= blocks <= window.blocks_after
                assert query - key <= window.reach
    farthest = max(
        query - key
        for query in positions
        for key in positions
        if found[query, key]
    )
    assert farthest == min(window.reach, LENGTH - 1)


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_it_is_a_plain_value(window):
    stored = keras.saving.serialize_keras_object(window)
    assert keras.saving.deserialize_keras_object(stored) == window
    assert isinstance(window, Window)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OwnBlock(0), "`length`.*length=0"),
        (lambda: OwnAndPreviousBlock(2.5), "`length`.*length=2.5"),
        (lambda: Band(-1), "`left`.*left=-1"),
        (lambda: Band(2, -3), "`right`.*right=-3"),
    ],
)
def test_a_wrong_length_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()

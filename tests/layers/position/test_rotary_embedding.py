"""RotaryEmbedding as a layer of its own."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tfm.layers import RotaryEmbedding
from keras_tfm.ops import rotate_by_position

B, H, T, D = 2, 3, 5, 14
HEADS = np.random.default_rng(1).normal(size=(B, H, T, D)).astype("float32")


def test_positions_begin_where_they_are_told_to():
    layer = RotaryEmbedding(pairing="halves", max_wavelength=100.0)
    options = {"pairing": "halves", "max_wavelength": 100.0}
    for call, positions in (
        ({}, np.arange(T)),
        ({"start_index": 7}, np.arange(7, 7 + T)),
        ({"positions": np.array([4, 1, 1, 0, 9])}, np.array([4, 1, 1, 0, 9])),
    ):
        np.testing.assert_array_equal(
            ops.convert_to_numpy(layer(HEADS, **call)),
            ops.convert_to_numpy(
                rotate_by_position(HEADS, positions, **options)
            ),
        )


def test_keras_hub_turns_the_same():
    from keras_hub.layers import RotaryEmbedding as Other

    # There the axis of positions is told, and halves are paired.
    other = Other(sequence_axis=2, feature_axis=-1)
    np.testing.assert_allclose(
        RotaryEmbedding(pairing="halves")(HEADS, start_index=3),
        ops.convert_to_numpy(other(HEADS, start_index=3)),
        atol=1e-5,
    )


def test_the_dtype_of_the_heads_stays():
    layer = RotaryEmbedding(dtype="mixed_bfloat16")
    output = layer(ops.cast(HEADS, "bfloat16"))
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rotary_dim": 7}, r"rotary_dim=7\. Try rotary_dim=6"),
        ({"pairing": "none"}, "`pairing` must be one of"),
        ({"max_wavelength": -1.0}, "`max_wavelength`"),
    ],
)
def test_a_wrong_argument_is_named_when_it_is_made(options, message):
    with pytest.raises(ValueError, match=message):
        RotaryEmbedding(**options)

"""Sinusoids against the formula, in every width, dtype and offset."""

import keras
import numpy as np
import pytest
from gradients import compiled
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops

from keras_tfm.layers import PositionalEncoding

B, T, E = 2, 5, 6


def encoding(length, width, dtype="float32", call=None, **options):
    """Return the encoding alone, `(length, width)`."""
    layer = PositionalEncoding(dtype=dtype, **options)
    zeros = ops.zeros((1, length, width))
    return ops.convert_to_numpy(
        ops.cast(layer(zeros, **(call or {})), "float32")
    )[0]


def paper(position, channel, width):
    """Section 3.5 of the paper, one number at a time."""
    angle = position / 10000 ** (2 * (channel // 2) / width)
    return np.cos(angle) if channel % 2 else np.sin(angle)


def tensor2tensor(position, channel, width):
    pairs = width // 2
    if channel == 2 * pairs:
        return 0.0
    frequency = 10000 ** -((channel % pairs) / max(pairs - 1, 1))
    angle = position * frequency
    return np.sin(angle) if channel < pairs else np.cos(angle)


@pytest.mark.parametrize("width", [1, 2, 6, 7])
def test_equals_the_formula_of_the_paper(width):
    ours = encoding(11, width, layout="interleaved", denominator="paper")
    expected = [[paper(p, c, width) for c in range(width)] for p in range(11)]
    np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("width", [1, 2, 6, 7])
def test_the_default_is_that_of_tensor2tensor(width):
    expected = [
        [tensor2tensor(p, c, width) for c in range(width)] for p in range(11)
    ]
    np.testing.assert_allclose(encoding(11, width), expected, atol=1e-5)


def test_the_two_are_no_permutations_of_each_other():
    ours = np.sort(encoding(7, E), axis=-1)
    paper_form = encoding(7, E, layout="interleaved", denominator="paper")
    assert np.abs(ours - np.sort(paper_form, axis=-1)).max() > 1e-2


@settings(max_examples=10)
@given(
    st.integers(1, 9),
    st.sampled_from(["concat", "interleaved"]),
    st.sampled_from(["tensor2tensor", "paper"]),
    st.integers(0, 4),
)
def test_a_start_index_shifts_the_positions(width, layout, denominator, start):
    options = {"layout": layout, "denominator": denominator}
    whole = encoding(7, width, **options)
    part = encoding(3, width, call={"start_index": start}, **options)
    np.testing.assert_allclose(part, whole[start : start + 3], atol=1e-6)
    assert whole.shape == (7, width)
    assert np.abs(whole).max() <= 1.0


def test_one_layer_remembers_no_offset():
    layer = PositionalEncoding()
    x = ops.zeros((1, 1, E))
    first = ops.convert_to_numpy(layer(x, start_index=3))
    second = ops.convert_to_numpy(layer(x, start_index=4))
    whole = encoding(T, E)
    np.testing.assert_allclose(first[0, 0], whole[3], atol=1e-6)
    np.testing.assert_allclose(second[0, 0], whole[4], atol=1e-6)


def test_positions_of_their_own_for_packed_rows():
    positions = np.array([[0, 1, 0, 1, 2], [3, 2, 1, 0, 0]])
    layer = PositionalEncoding()
    result = layer(ops.zeros((B, T, E)), positions=positions)
    np.testing.assert_allclose(result, encoding(4, E)[positions], atol=1e-6)
    symbolic = layer(keras.Input((T, E)), positions=keras.Input((T,)))
    assert symbolic.shape == (None, T, E)


def test_the_encoding_is_added():
    x = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")
    np.testing.assert_allclose(
        PositionalEncoding()(x), x + encoding(T, E), atol=1e-6
    )


@pytest.mark.parametrize(
    ("dtype", "error"),
    [("float32", 1e-3), ("mixed_float16", 1e-2), ("mixed_bfloat16", 1e-2)],
)
def test_far_positions_are_right_in_every_dtype(dtype, error):
    # Neither 4001 nor 4003 is a number in 16 bits.
    result = encoding(4, 64, dtype, {"start_index": 4000})
    expected = [
        [tensor2tensor(4000 + p, c, 64) for c in range(64)] for p in range(4)
    ]
    np.testing.assert_allclose(result, expected, atol=error)


def test_any_length_after_the_first():
    inputs = keras.Input((None, E))
    model = keras.Model(inputs, PositionalEncoding()(inputs))
    call = compiled(model)
    for length in (3, 38):
        result = call(ops.zeros((1, length, E)))
        np.testing.assert_allclose(result[0], encoding(length, E), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "concatenated"}, "Did you mean 'concat'"),
        ({"denominator": "papers"}, "Did you mean 'paper'"),
        ({"max_wavelength": 0}, "Received: max_wavelength=0"),
    ],
)
def test_an_unknown_choice_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        PositionalEncoding(**options)

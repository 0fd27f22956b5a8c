"""Rotary positions against complex numbers and another library's code."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops

from keras_tfm.ops.rotary import rotary_frequencies
from keras_tfm.ops.rotary import rotate_by_position

B, H, T, D = 2, 3, 5, 14
rng = np.random.default_rng(5)
HEADS = rng.normal(size=(B, H, T, D)).astype("float32")


def rotated(heads, positions, **options):
    return ops.convert_to_numpy(rotate_by_position(heads, positions, **options))


def by_complex_numbers(heads, positions):
    """Equation 34: each pair of channels is a complex number that is turned."""
    pairs = heads[..., 0::2] + 1j * heads[..., 1::2]
    size = heads.shape[-1]
    theta = 10000.0 ** (-2 * np.arange(size // 2) / size)
    turned = pairs * np.exp(1j * np.multiply.outer(positions, theta))
    return np.stack([turned.real, turned.imag], -1).reshape(heads.shape)


def test_it_is_the_turn_of_a_complex_number():
    positions = np.array([0, 1, 5, 17, 4096])
    np.testing.assert_allclose(
        rotated(HEADS, positions),
        by_complex_numbers(HEADS, positions),
        atol=2e-3,
    )
    np.testing.assert_allclose(
        rotated(HEADS, np.arange(T)),
        by_complex_numbers(HEADS, np.arange(T)),
        atol=1e-5,
    )


def test_halves_are_those_of_llama():
    from transformers.models.llama import modeling_llama as llama

    positions = np.arange(7, 7 + T)
    angles = np.multiply.outer(positions, rotary_frequencies(D))
    angles = torch.tensor(np.concatenate([angles, angles], -1))[None]
    heads = torch.tensor(HEADS)
    expected, _ = llama.apply_rotary_pos_emb(
        heads, heads, angles.cos(), angles.sin()
    )
    np.testing.assert_allclose(
        rotated(HEADS, positions, pairing="halves"), expected, atol=1e-5
    )


def test_pairs_that_are_neighbours_are_those_of_gpt_j():
    from transformers.models.gptj import modeling_gptj as gptj

    positions = np.arange(3, 3 + T)
    table = gptj.create_sinusoidal_positions(3 + T, D)[positions]
    sines, cosines = (part[None] for part in torch.chunk(table, 2, dim=-1))
    # There the heads come after the positions.
    heads = torch.tensor(HEADS.transpose(0, 2, 1, 3))
    expected = gptj.apply_rotary_pos_emb(heads, sines, cosines)
    np.testing.assert_allclose(
        rotated(HEADS, positions),
        expected.numpy().transpose(0, 2, 1, 3),
        atol=1e-5,
    )


@pytest.mark.parametrize("pairing", ["interleaved", "halves"])
@settings(max_examples=9)
@given(st.integers(0, 97), st.integers(0, 97), st.integers(0, 997))
def test_a_product_knows_the_distance_alone(pairing, query, key, shift):
    def product(query_position, key_position):
        return (
            rotated(HEADS[:, :, :1], [query_position], pairing=pairing)
            * rotated(HEADS[:, :, 1:2], [key_position], pairing=pairing)
        ).sum(-1)

    np.testing.assert_allclose(
        product(query + shift, key + shift), product(query, key), atol=1e-3
    )


def test_each_row_may_have_positions_of_its_own():
    positions = np.array([[0, 1, 2, 3, 4], [9, 0, 1, 0, 1]])
    together = rotated(HEADS, positions)
    for row in range(B):
        alone = rotated(HEADS[row : row + 1], positions[row])
        np.testing.assert_allclose(together[row], alone[0], atol=1e-6)


@pytest.mark.parametrize("pairing", ["interleaved", "halves"])
def test_channels_that_do_not_turn_stay(pairing):
    found = rotated(HEADS, np.arange(T), rotary_dim=6, pairing=pairing)
    np.testing.assert_array_equal(found[..., 6:], HEADS[..., 6:])
    np.testing.assert_allclose(
        found[..., :6],
        rotated(HEADS[..., :6], np.arange(T), pairing=pairing),
        atol=1e-6,
    )


def test_far_positions_are_told_apart_in_half_precision():
    heads = ops.cast(ops.ones((1, 1, 2, D)), "bfloat16")
    found = rotate_by_position(heads, [4095, 4096])
    assert "bfloat16" in str(found.dtype)
    found = ops.convert_to_numpy(ops.cast(found, "float32"))[0, 0]
    expected = by_complex_numbers(np.ones((2, D)), np.array([4095, 4096]))
    np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rotary_dim": 5}, r"even\. Received: rotary_dim=5\. Try .*=4"),
        ({"rotary_dim": 16}, "must not exceed.*rotary_dim=16.*a head: 14"),
        (
            {"pairing": "half"},
            "`pairing` must be one of.*Did you mean 'halves'",
        ),
        ({"max_wavelength": 0}, "`max_wavelength`"),
    ],
)
def test_a_wrong_argument_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        rotate_by_position(HEADS, np.arange(T), **options)


def test_an_odd_head_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"rotary_dim=13\. Try rotary_dim=12"):
        rotate_by_position(HEADS[..., :13], np.arange(T))

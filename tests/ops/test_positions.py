"""Sinusoids against loops over the published formulas."""

import math

import keras
import numpy as np
import pytest
from backend_functions import compiled

from keras_tfm.ops.positions import check_positions
from keras_tfm.ops.positions import positions_from
from keras_tfm.ops.positions import sinusoid_frequencies
from keras_tfm.ops.positions import sinusoids

LAYOUTS = ["concat", "interleaved"]
DENOMINATORS = ["tensor2tensor", "paper"]


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


def by_loops(positions, width, layout, denominator, longest=10000.0):
    """Write each channel where the layout puts it, in float64."""
    table = np.zeros((len(positions), width))
    pairs = width // 2
    for row, position in enumerate(positions):
        for channel in range(width):
            if layout == "interleaved":
                index, is_sine = channel // 2, channel % 2 == 0
            else:
                sines = pairs + (denominator == "paper" and width % 2)
                is_sine = channel < sines
                index = channel if is_sine else channel - sines
            if denominator == "paper":
                frequency = longest ** (-2 * index / width)
            else:
                if index >= pairs or channel >= 2 * pairs:
                    continue  # The odd channel out stays 0.
                frequency = longest ** (-index / max(pairs - 1, 1))
            wave = math.sin if is_sine else math.cos
            table[row, channel] = wave(position * frequency)
    return table


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_sinusoids_are_what_loops_make_of_them(width, layout, denominator):
    positions = [0, 1, 2, 3, 17, 100]
    found = array(sinusoids(positions, width, layout, denominator))
    assert found.shape == (6, width)
    np.testing.assert_allclose(
        found, by_loops(positions, width, layout, denominator), atol=2e-5
    )


def test_the_formula_of_the_paper():
    # PE(p, 2i) = sin(p / 10000^(2i / d)), PE(p, 2i + 1) = cos of the same.
    width = 512
    found = array(sinusoids(range(50), width, "interleaved", "paper"))
    for position in range(50):
        for i in range(width // 2):
            angle = position / 10000 ** (2 * i / width)
            assert abs(found[position, 2 * i] - math.sin(angle)) < 1e-5
            assert abs(found[position, 2 * i + 1] - math.cos(angle)) < 1e-5


def test_the_formula_of_tensor2tensor():
    # n = d // 2, f_i = 10000^(-i / (n - 1)), all sines and then all cosines.
    width, pairs = 512, 256
    found = array(sinusoids(range(50), width))
    for position in range(50):
        for i in range(pairs):
            angle = position * 10000 ** (-i / (pairs - 1))
            assert abs(found[position, i] - math.sin(angle)) < 1e-5
            assert abs(found[position, pairs + i] - math.cos(angle)) < 1e-5


def test_the_two_formulas_are_no_permutations_of_each_other():
    ours = array(sinusoids([5], 16, "concat", "tensor2tensor"))
    paper = array(sinusoids([5], 16, "interleaved", "paper"))
    assert np.abs(np.sort(ours) - np.sort(paper)).max() > 0.05


def test_layouts_of_one_denominator_are_permutations_of_each_other():
    side_by_side = array(sinusoids(range(9), 16, "interleaved", "paper"))
    in_halves = array(sinusoids(range(9), 16, "concat", "paper"))
    np.testing.assert_array_equal(side_by_side[:, 0::2], in_halves[:, :8])
    np.testing.assert_array_equal(side_by_side[:, 1::2], in_halves[:, 8:])


@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_huge_positions_are_right_in_float32(denominator):
    positions = [2048, 4097, 65_535, 100_000]
    with_policy = {}
    for policy in ("float32", "mixed_float16", "mixed_bfloat16"):
        keras.config.set_dtype_policy(policy)
        with_policy[policy] = array(
            sinusoids(positions, 16, "concat", denominator)
        )
        assert with_policy[policy].dtype == "float32"
    expected = by_loops(positions, 16, "concat", denominator)
    # A float32 angle of 1e5 is known to 4e-3.
    np.testing.assert_allclose(with_policy["float32"], expected, atol=1e-2)
    for found in with_policy.values():
        np.testing.assert_array_equal(found, with_policy["float32"])


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize("width", [1, 6, 7])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_positions_may_have_any_shape(shape, width, layout):
    positions = np.random.default_rng(0).integers(0, 99, shape)
    found = array(sinusoids(positions, width, layout))
    assert found.shape == (*shape, width)
    np.testing.assert_allclose(
        found.reshape(-1, width),
        by_loops(positions.reshape(-1), width, layout, "tensor2tensor"),
        atol=2e-5,
    )


def test_the_longest_wavelength_can_be_chosen():
    found = array(sinusoids([3], 6, "interleaved", "paper", 100.0))
    expected = by_loops([3], 6, "interleaved", "paper", 100.0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_frequencies_fall_from_one_to_the_longest_wavelength():
    ours = sinusoid_frequencies(512)
    assert ours.shape == (256,)
    assert ours[0] == 1.0
    assert ours[-1] == pytest.approx(1e-4)
    assert sinusoid_frequencies(512, "paper")[-1] > 1e-4
    assert (np.diff(ours) < 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "`hidden_dim` must be a whole number of at least 1"),
        ((4, "concatenate"), "`layout` must be one of .* mean 'concat'"),
        ((4, "concat", "papers"), "`denominator` must be one .* mean 'paper'"),
        (
            (4, "concat", "paper", 0.0),
            "`max_wavelength` must be a number above",
        ),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sinusoids([0], *arguments)


@pytest.mark.parametrize("start", [0, 3, np.int64(3)])
def test_positions_count_from_their_start(start):
    found = positions_from(4, start)
    assert keras.backend.standardize_dtype(found.dtype) == "int32"
    assert array(found).tolist() == [start + i for i in range(4)]


def test_a_start_known_only_when_the_program_runs_is_not_remembered():
    run = compiled(lambda start: sinusoids(positions_from(2, start), 6))
    for start in (0, 3, 1):
        found = array(run(keras.ops.convert_to_tensor(start, "int32")))
        expected = by_loops([start, start + 1], 6, "concat", "tensor2tensor")
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_position_beyond_a_table_is_an_error_that_says_how_far():
    check_positions(np.array([[0, 4]]), 5, "places")
    check_positions(np.zeros((0,), "int32"), 5, "places")
    with pytest.raises(ValueError, match="knows positions 0 to 4") as info:
        check_positions(keras.ops.convert_to_tensor([[1, 5]]), 5, "places")
    assert "`places`" in str(info.value)
    assert "Received position 5" in str(info.value)
    assert "max_sequence_length" in str(info.value)


def test_positions_that_are_not_known_yet_pass():
    def double(positions):
        check_positions(positions, 5, "places")
        return 2 * positions

    found = compiled(double)(keras.ops.convert_to_tensor([7]))
    assert array(found).tolist() == [14]

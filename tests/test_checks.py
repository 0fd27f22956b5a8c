"""Each check lets the right values through and explains the wrong ones."""

import numpy as np
import pytest

from keras_tfm import checks

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [1, 8, np.int64(8), np.int8(3)])
def test_a_positive_whole_number_comes_back_as_an_int(value):
    result = checks.check_positive_int("num_heads", value)
    assert result == value
    assert type(result) is int


@pytest.mark.parametrize("value", [0, -3, 1.5, 2.0, "2", None, True, [1]])
def test_anything_else_is_named_in_the_error(value):
    with pytest.raises(ValueError, match="`num_heads` must be a whole") as info:
        checks.check_positive_int("num_heads", value)
    assert "at least 1" in str(info.value)
    assert f"Received: num_heads={value!r}." in str(info.value)


def test_a_whole_number_may_be_zero():
    assert checks.check_whole_number("window", 0) == 0
    assert type(checks.check_whole_number("window", np.int32(5))) is int


@pytest.mark.parametrize("value", [-1, 0.0, "0", None, False])
def test_a_whole_number_is_no_less_and_no_float(value):
    with pytest.raises(ValueError, match="`window` must be a whole") as info:
        checks.check_whole_number("window", value)
    assert "at least 0" in str(info.value)
    assert f"window={value!r}" in str(info.value)


@pytest.mark.parametrize("value", [1e-9, 3, np.float32(0.5), 1e30])
def test_a_positive_number_comes_back_as_a_float(value):
    result = checks.check_positive("peak", value)
    assert result == value
    assert type(result) is float


@pytest.mark.parametrize("value", [0, -1.0, INF, NAN, "1", None, True])
def test_zero_negative_and_infinite_numbers_are_refused(value):
    with pytest.raises(ValueError, match="`peak` must be a number above 0"):
        checks.check_positive("peak", value)


@pytest.mark.parametrize("value", [0, 0.0, 0.999, np.float64(0.1)])
def test_a_share_lies_from_zero_to_below_one(value):
    result = checks.check_share("dropout", value)
    assert result == value
    assert type(result) is float


@pytest.mark.parametrize("value", [1, 1.0, -0.1, NAN, INF, "0.1", None, False])
def test_no_other_share_is_taken(value):
    with pytest.raises(ValueError, match=r"in \[0, 1\)") as info:
        checks.check_share("dropout", value)
    assert f"Received: dropout={value!r}." in str(info.value)


def test_a_divisible_number_passes():
    assert checks.check_divisible("hidden_dim", 96, "num_heads", 8) is None


@pytest.mark.parametrize(
    ("value", "parts", "proposal"), [(100, 8, 96), (2, 8, 8), (7, 3, 6)]
)
def test_an_indivisible_number_gets_a_proposal(value, parts, proposal):
    with pytest.raises(ValueError, match="`hidden_dim` must be") as info:
        checks.check_divisible("hidden_dim", value, "num_heads", parts)
    assert str(info.value) == (
        "`hidden_dim` must be divisible by `num_heads`. Received: "
        f"hidden_dim={value}, num_heads={parts}. Try hidden_dim={proposal}."
    )


@pytest.mark.parametrize("value", ["all", "decoder", None])
def test_a_known_choice_passes(value):
    choices = ("all", "decoder", None)
    assert checks.check_choice("tie", value, choices) is value


def test_a_misspelt_choice_gets_the_nearest_one():
    with pytest.raises(ValueError, match="must be one of") as info:
        checks.check_choice("layout", "conkat", ("concat", "interleaved"))
    assert str(info.value) == (
        "`layout` must be one of 'concat', 'interleaved'. "
        "Received: layout='conkat'. Did you mean 'concat'?"
    )


def test_a_choice_like_no_other_gets_no_proposal():
    with pytest.raises(ValueError, match="Received: layout=3") as info:
        checks.check_choice("layout", 3, iter(("concat", "interleaved")))
    assert "Did you mean" not in str(info.value)

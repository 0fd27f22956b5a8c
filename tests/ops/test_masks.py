"""Masks against plain loops, and what happens to masks of other kinds."""

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import gradients
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.ops import masks

# A new shape is a new program on JAX: few of them, and few examples.
LENGTHS = st.sampled_from([1, 2, 5])
few = settings(max_examples=25)


def array(tensor):
    assert keras.backend.standardize_dtype(tensor.dtype) == "bool"
    return keras.ops.convert_to_numpy(tensor)


def by_rule(rows, columns, rule):
    """Fill a boolean array one pair at a time."""
    mask = np.zeros((rows, columns), bool)
    for row in range(rows):
        for column in range(columns):
            mask[row, column] = rule(row, column)
    return mask


def test_true_marks_a_real_token():
    ids = [[5, 0, 7], [0, 0, 3]]
    expected = [[True, False, True], [False, False, True]]
    assert array(masks.padding_mask(ids)).tolist() == expected


def test_padding_may_have_any_id():
    assert array(masks.padding_mask([[5, 0, 7]], pad_id=7)).tolist() == [
        [True, True, False]
    ]


def test_the_first_query_of_a_causal_mask_sees_only_itself():
    assert array(masks.causal_mask(4))[0].tolist() == [
        True,
        False,
        False,
        False,
    ]


@few
@given(queries=LENGTHS, keys=LENGTHS, offset=st.integers(-8, 8))
def test_a_causal_mask_follows_its_rule(queries, keys, offset):
    np.testing.assert_array_equal(
        array(masks.causal_mask(queries, keys, offset)),
        by_rule(queries, keys, lambda i, j: j <= offset + i),
    )


@few
@given(queries=LENGTHS, more=st.sampled_from([0, 3]))
def test_queries_after_cached_keys_see_all_of_them(queries, more):
    keys = queries + more
    np.testing.assert_array_equal(
        array(masks.causal_mask(queries, keys)),
        by_rule(keys, keys, lambda i, j: j <= i)[-queries:],
    )


def test_a_causal_offset_may_be_known_only_when_the_program_runs():
    mask = compiled(lambda offset: masks.causal_mask(2, 5, offset))
    for offset in range(5):
        np.testing.assert_array_equal(
            array(mask(keras.ops.convert_to_tensor(offset, "int32"))),
            by_rule(2, 5, lambda i, j, offset=offset: j <= offset + i),
        )


@few
@given(
    queries=LENGTHS,
    keys=LENGTHS,
    left=st.none() | st.integers(0, 8),
    right=st.none() | st.integers(0, 8),
)
def test_a_band_follows_its_rule(queries, keys, left, right):
    def seen(i, j):
        return (left is None or i - j <= left) and (
            right is None or j - i <= right
        )

    np.testing.assert_array_equal(
        array(masks.band_mask(queries, keys, left, right)),
        by_rule(queries, keys, seen),
    )


def test_a_band_without_a_key_length_is_square():
    np.testing.assert_array_equal(
        array(masks.band_mask(5, right=0)), array(masks.causal_mask(5))
    )


@few
@given(data=st.data(), queries=LENGTHS, keys=LENGTHS)
def test_segments_see_only_themselves(data, queries, keys):
    def draw(length):
        row = st.lists(st.integers(0, 3), min_size=length, max_size=length)
        return data.draw(st.lists(row, min_size=2, max_size=2))

    q, k = draw(queries), draw(keys)
    found = array(masks.segment_mask(q, k))
    for row in range(2):
        np.testing.assert_array_equal(
            found[row],
            by_rule(
                queries,
                keys,
                lambda i, j, row=row: q[row][i] == k[row][j] != 0,
            ),
        )


def test_padding_between_segments_sees_nothing_and_is_not_seen():
    found = array(masks.segment_mask([[1, 0, 2, 0]]))[0]
    np.testing.assert_array_equal(found, np.diag([True, False, True, False]))


def test_combined_masks_allow_what_all_of_them_allow():
    generator = np.random.default_rng(0)
    parts = [
        generator.random(shape) < 0.7
        for shape in [(3, 1, 1, 7), (1, 1, 5, 7), (3, 2, 5, 7)]
    ]
    found = array(masks.combine_masks(parts[0], None, parts[1], parts[2]))
    for b, h, t, s in np.ndindex(3, 2, 5, 7):
        assert found[b, h, t, s] == (
            parts[0][b, 0, 0, s]
            and parts[1][0, 0, t, s]
            and parts[2][b, h, t, s]
        )


def test_nothing_combined_is_no_mask():
    assert masks.combine_masks() is None
    assert masks.combine_masks(None, None) is None
    assert masks.expand_padding_mask(None) is None
    assert masks.expand_attention_mask(None) is None


def test_a_padding_mask_hides_keys_not_queries():
    mask = np.array([[True, False, True], [True, True, False]])
    found = array(masks.expand_padding_mask(mask))
    assert found.shape == (2, 1, 1, 3)
    np.testing.assert_array_equal(found[:, 0, 0], mask)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((5, 7), (1, 1, 5, 7)),
        ((3, 5, 7), (3, 1, 5, 7)),
        ((3, 2, 5, 7), (3, 2, 5, 7)),
    ],
)
def test_an_attention_mask_is_read_from_its_last_axes(shape, expected):
    mask = np.random.default_rng(1).random(shape) < 0.5
    found = array(masks.expand_attention_mask(mask))
    assert found.shape == expected
    np.testing.assert_array_equal(found.reshape(shape), mask)


def test_a_square_attention_mask_of_rank_two_is_never_a_batch():
    found = array(masks.expand_attention_mask(np.tri(3, dtype=bool)))
    np.testing.assert_array_equal(found[0, 0], np.tri(3, dtype=bool))


@pytest.mark.parametrize("shape", [(5,), (1, 2, 3, 5, 7)])
def test_an_attention_mask_of_another_rank_is_an_error(shape):
    with pytest.raises(ValueError, match=r"`attention_mask` must have") as info:
        masks.expand_attention_mask(np.ones(shape, bool))
    assert f"Received: {shape}" in str(info.value)


def test_a_padding_mask_of_another_rank_points_to_the_attention_mask():
    with pytest.raises(ValueError, match=r"\(batch, length\)") as info:
        masks.expand_padding_mask(np.ones((2, 3, 5), bool))
    assert "(2, 3, 5)" in str(info.value)
    assert "as `attention_mask`" in str(info.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize(
    ("expand", "name", "shape"),
    [
        (masks.expand_attention_mask, "attention_mask", (5, 7)),
        (masks.expand_padding_mask, "padding_mask", (3, 7)),
        (masks.as_boolean_mask, "mask", (7,)),
    ],
)
def test_a_float_mask_is_refused_with_its_polarity(expand, name, shape, dtype):
    with pytest.raises(TypeError, match=f"`{name}` must be boolean") as info:
        expand(keras.ops.zeros(shape, dtype))
    assert "True means 'may attend'" in str(info.value)
    assert f"Received dtype {dtype}" in str(info.value)
    assert "from_additive_mask" in str(info.value)
    assert "position_bias" in str(info.value)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64"])
def test_an_integer_mask_counts_nonzero_as_true(dtype):
    mask = np.array([[0, 1, 2]], dtype)
    assert array(masks.as_boolean_mask(mask)).tolist() == [[False, True, True]]


@pytest.mark.parametrize(
    "hidden",
    [-1e9, -1e4, -np.inf, np.finfo("float32").min, np.finfo("float16").min],
)
def test_every_usual_additive_constant_hides(hidden):
    mask = np.array([[0.0, hidden], [hidden, 0.0]], "float32")
    found = array(masks.from_additive_mask(mask))
    np.testing.assert_array_equal(found, np.eye(2, dtype=bool))


def test_an_additive_mask_in_half_precision_is_read_too():
    mask = keras.ops.convert_to_tensor([[0.0, -65504.0]], "float16")
    assert array(masks.from_additive_mask(mask)).tolist() == [[True, False]]


def test_torch_hides_what_we_show():
    torch_mask = np.triu(np.ones((4, 4), bool), 1)  # As torch makes it.
    np.testing.assert_array_equal(
        array(masks.from_torch_mask(torch_mask)), array(masks.causal_mask(4))
    )


def test_an_additive_mask_of_torch_is_not_taken_for_a_boolean_one():
    with pytest.raises(TypeError, match="from_additive_mask"):
        masks.from_torch_mask(np.zeros((4, 4), "float32"))


def test_the_implicit_mask_is_found_and_left_alone():
    ids = np.array([[3, 1, 0]])
    vectors = keras.layers.Embedding(5, 2, mask_zero=True)(ids)
    for _ in range(2):
        found = masks.implicit_mask(vectors)
        assert array(found).tolist() == [[True, True, False]]
    assert masks.implicit_mask(np.zeros(3)) is None


def test_padding_is_set_to_zero_whatever_it_holds():
    x = np.arange(12, dtype="float32").reshape(2, 3, 2) + 1
    mask = np.array([[True, False, True], [True, True, False]])
    dirty = np.where(mask[..., None], x, np.nan).astype("float32")
    dirty[1, 2, 0] = np.inf
    found = keras.ops.convert_to_numpy(masks.zero_padding(dirty, mask))
    np.testing.assert_array_equal(found, x * mask[..., None])


def test_without_a_mask_nothing_is_set_to_zero():
    x = np.array([[[np.nan]]])
    assert masks.zero_padding(x, None) is x


def test_what_padding_holds_reaches_no_gradient():
    x = np.array([[[1.0, 2.0], [np.nan, np.inf]]], "float32")
    kernel = np.ones((2, 3), "float32")

    def total(x, kernel):
        rows = masks.zero_padding(x, np.array([[True, False]]))
        return keras.ops.sum(keras.ops.matmul(rows, kernel))

    (by_x, by_kernel), _ = gradients(total, [x, kernel])
    np.testing.assert_array_equal(by_x, [[[3.0, 3.0], [0.0, 0.0]]])
    np.testing.assert_array_equal(by_kernel, [[1.0] * 3, [2.0] * 3])


def test_zeroed_padding_keeps_its_dtype():
    x = keras.ops.ones((1, 2, 3), "float16")
    found = masks.zero_padding(x, np.array([[1, 0]]))
    assert keras.backend.standardize_dtype(found.dtype) == "float16"

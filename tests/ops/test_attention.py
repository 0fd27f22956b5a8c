"""Scaled dot-product attention against loops, and its hard cases."""

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import gradients
from hypothesis import given
from hypothesis import strategies as st

from keras_tfm.ops.attention import attention_weights
from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.attention import split_heads

# Distinct primes: batch, heads, queries, keys, key size, value size.
B, H, T, S, D, DV = 2, 3, 5, 7, 11, 13


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


def inputs(seed=0, scale=1.0):
    generator = np.random.default_rng(seed)
    shapes = [(B, H, T, D), (B, H, S, D), (B, H, S, DV)]
    return [
        (scale * generator.normal(size=shape)).astype("float32")
        for shape in shapes
    ]


def by_loops(query, key, value, mask=None, bias=None):
    """Attention in float64, one query at a time."""
    query, key, value = (x.astype("float64") for x in (query, key, value))
    full = (*query.shape[:3], key.shape[2])
    mask = np.broadcast_to(True if mask is None else mask, full)
    bias = np.broadcast_to(0.0 if bias is None else bias, full)
    weights = np.zeros(full)
    output = np.zeros((*query.shape[:3], value.shape[-1]))
    for b, h, t in np.ndindex(*full[:3]):
        keys = [s for s in range(full[3]) if mask[b, h, t, s]]
        if not keys:
            continue
        scores = np.array(
            [
                sum(query[b, h, t] * key[b, h, s]) / np.sqrt(query.shape[-1])
                + bias[b, h, t, s]
                for s in keys
            ]
        )
        powers = np.exp(scores - scores.max())
        for s, weight in zip(keys, powers / powers.sum(), strict=True):
            weights[b, h, t, s] = weight
            output[b, h, t] += weight * value[b, h, s]
    return output, weights


def some_mask(shape=(B, H, T, S), seed=3):
    mask = np.random.default_rng(seed).random(shape) < 0.6
    mask[..., 0, :] = False  # A query that may attend nowhere.
    mask[..., 1, :] = False
    mask[..., 1, 2] = True  # A query that sees one key.
    return mask


@pytest.mark.parametrize(
    "shape", [None, (1, 1, T, S), (B, 1, T, S), (B, H, T, S)]
)
@pytest.mark.parametrize("biased", [False, True])
def test_attention_is_what_loops_make_of_it(shape, biased):
    query, key, value = inputs()
    mask = None if shape is None else some_mask(shape)
    bias = None
    if biased:
        bias = np.random.default_rng(9).normal(size=(1, H, T, S))
        bias = bias.astype("float32")
    output, weights = dot_product_attention(query, key, value, mask, bias)
    expected, expected_weights = by_loops(query, key, value, mask, bias)
    np.testing.assert_allclose(array(output), expected, atol=1e-6)
    np.testing.assert_allclose(array(weights), expected_weights, atol=1e-6)


def test_a_padding_mask_of_keys_hides_them_from_every_query():
    query, key, value = inputs()
    mask = np.arange(S) < np.array([[4], [6]])
    output, weights = dot_product_attention(
        query, key, value, mask[:, None, None]
    )
    assert array(weights)[0, :, :, 4:].max() == 0.0
    assert array(weights)[1, :, :, 6:].max() == 0.0
    alone, _ = dot_product_attention(
        query[:1], key[:1, :, :4], value[:1, :, :4]
    )
    np.testing.assert_allclose(array(output)[:1], array(alone), atol=1e-6)


@given(seed=st.integers(0, 2**16), scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_rows_sum_to_one_or_to_nothing(seed, scale):
    query, key, _ = inputs(seed, scale)
    mask = np.random.default_rng(seed).random((B, H, T, S)) < 0.4
    weights = array(attention_weights(query, key, mask))
    np.testing.assert_allclose(
        weights.sum(-1), mask.any(-1).astype(float), atol=1e-5
    )
    assert (weights[~mask] == 0.0).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("jit", [False, True])
def test_a_query_without_keys_gives_zeros_and_finite_gradients(dtype, jit):
    mask = some_mask()

    def attend(query, key, value):
        tensors = [keras.ops.cast(x, dtype) for x in (query, key, value)]
        output, weights = dot_product_attention(*tensors, mask)
        return keras.ops.cast(output, "float32"), weights

    run = compiled(attend) if jit else attend
    output, weights = run(*inputs())
    assert (array(output)[:, :, 0] == 0.0).all()
    assert (array(weights)[:, :, 0] == 0.0).all()
    by_tensor, _ = gradients(
        lambda *x: keras.ops.sum(attend(*x)[0]), inputs(), jit=jit
    )
    assert all(np.isfinite(gradient).all() for gradient in by_tensor)
    assert (by_tensor[0][:, :, 0] == 0.0).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_very_low_scores_in_half_precision_stay_finite(dtype):
    # Scores near -100, half of the keys hidden: a mask constant of float16
    # added to them would be minus infinity.
    query = keras.ops.cast(np.full((1, 1, 2, 4), 7.0), dtype)
    key = keras.ops.cast(np.full((1, 1, 6, 4), -7.0), dtype)
    mask = (np.arange(6) % 2 == 0)[None, None, None]
    output, weights = dot_product_attention(query, key, key, mask)
    assert np.isfinite(array(keras.ops.cast(output, "float32"))).all()
    np.testing.assert_allclose(
        array(weights)[0, 0], [[1 / 3, 0, 1 / 3, 0, 1 / 3, 0]] * 2, atol=1e-6
    )


def test_products_too_large_for_float16_are_scaled_first():
    query = keras.ops.cast(np.full((1, 1, 1, 64), 40.0), "float16")
    key = keras.ops.cast(np.full((1, 1, 2, 64), 40.0), "float16")
    # 64 x 40 x 40 = 102,400 is beyond float16; a eighth of it is not.
    weights = array(attention_weights(query, key))
    np.testing.assert_array_equal(weights, [[[[0.5, 0.5]]]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_weights_are_float32_and_the_output_keeps_its_dtype(dtype):
    tensors = [keras.ops.cast(x, dtype) for x in inputs()]
    output, weights = dot_product_attention(*tensors)
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"


def test_the_returned_weights_are_those_before_the_drop():
    query, key, value = inputs()
    kept, weights = dot_product_attention(query, key, value)
    dropped, same = dot_product_attention(
        query, key, value, drop=lambda weights: weights * 0.0
    )
    np.testing.assert_array_equal(array(same), array(weights))
    assert (array(dropped) == 0.0).all()
    assert (array(kept) != 0.0).any()


def test_a_bias_for_a_hidden_pair_changes_nothing():
    query, key, value = inputs()
    mask = some_mask()
    bias = np.where(mask, 0.0, 1e30).astype("float32")
    plain, _ = dot_product_attention(query, key, value, mask)
    biased, _ = dot_product_attention(query, key, value, mask, bias)
    np.testing.assert_array_equal(array(plain), array(biased))


def test_heads_are_neighbouring_channels():
    x = np.arange(B * T * H * D, dtype="float32").reshape(B, T, H * D)
    heads = array(split_heads(keras.ops.convert_to_tensor(x), H))
    assert heads.shape == (B, H, T, D)
    for b, h, t, d in np.ndindex(B, H, T, D):
        assert heads[b, h, t, d] == x[b, t, h * D + d]


def test_joining_heads_undoes_splitting_them():
    x = np.random.default_rng(0).normal(size=(B, T, H * D)).astype("float32")
    heads = split_heads(keras.ops.convert_to_tensor(x), H)
    np.testing.assert_array_equal(array(join_heads(heads)), x)

"""Blockwise attention against the dense one: all of it, and its memory."""

import keras
import numpy as np
import pytest
from backend_functions import gradients
from backend_functions import output_and_gradients
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops

from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.blockwise_attention import blockwise_attention
from keras_tfm.ops.dropout import dropout

# Distinct primes: batch, heads, queries, keys, key size, value size.
B, H, T, S, D, DV = 2, 3, 13, 19, 5, 7
# Neither divides a length; and larger than any length.
TILES = [(4, 6), (5, 3), (1, 1), (64, 32)]
SEED = np.array([2017, 612], "uint32")
BIASES = [(1, H, T, S), (B, 1, 1, S), (1, H, T, 1), (1, 1, 1, 1), (B, H, T, S)]


def array(tensor):
    return ops.convert_to_numpy(tensor)


def inputs(queries=T, keys=S, scale=1.0, seed=0):
    generator = np.random.default_rng(seed)
    shapes = [(B, H, queries, D), (B, H, keys, D), (B, H, keys, DV)]
    return [
        (scale * generator.normal(size=shape)).astype("float32")
        for shape in shapes
    ]


def padding(keys=S):
    lengths = np.array([keys, max(keys - 8, 0)])
    return np.arange(keys) < lengths[:, None, None, None]


def some_mask(queries=T, keys=S):
    mask = np.random.default_rng(3).random((B, 1, queries, keys)) < 0.6
    mask[..., 0, :] = False  # A query that may attend nowhere.
    return mask


def dense(query, key, value, masks, bias, causal, rate):
    mask = np.ones((1, 1, 1, 1), bool)
    for one in masks:
        mask = mask & one
    if causal:
        queries, keys = query.shape[2], key.shape[2]
        mask = mask & np.tri(queries, keys, keys - queries, dtype=bool)
    drop = None
    if rate:

        def drop(weights):
            return dropout(weights, rate, SEED)

    return dot_product_attention(query, key, value, mask, bias, drop)[0]


def assert_same(
    tensors, masks, bias, causal, rate, tiles, atol=1e-5, jit=False
):
    """Compare the output and every gradient with those of dense attention."""
    if bias is not None:
        tensors = [*tensors, bias]

    def blockwise(*tensors):
        return blockwise_attention(
            *tensors[:3],
            masks,
            tensors[3] if bias is not None else None,
            causal,
            rate,
            SEED if rate else None,
            *tiles,
        )

    def expected(*tensors):
        bias_tensor = tensors[3] if bias is not None else None
        return dense(*tensors[:3], masks, bias_tensor, causal, rate)

    weights = np.random.default_rng(9).normal(size=(*tensors[0].shape[:3], DV))
    weights = weights.astype("float32")
    output, found = output_and_gradients(blockwise, weights, tensors, jit)
    wanted_output, wanted = output_and_gradients(
        expected, weights, tensors, jit
    )
    np.testing.assert_allclose(output, wanted_output, atol=atol)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("causal", [False, True])
def test_it_is_dense_attention(tiles, causal):
    assert_same(inputs(), (padding(), some_mask()), None, causal, 0.0, tiles)


@pytest.mark.parametrize("shape", BIASES)
def test_a_bias_is_added_and_learnt_whatever_it_is_broadcast_to(shape):
    bias = np.random.default_rng(7).normal(size=shape).astype("float32")
    assert_same(inputs(), (padding(),), bias, True, 0.0, (4, 6))


@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("lengths", [(T, S), (S, T), (1, S), (T, 1)])
def test_scores_of_distances_are_added_and_learnt(tiles, lengths):
    queries, keys = lengths
    generator = np.random.default_rng(7)
    by_distance = generator.normal(size=(H, queries + keys - 1))
    by_distance = by_distance.astype("float32")
    tensors = [*inputs(queries, keys), by_distance]

    def blockwise(query, key, value, by_distance):
        return blockwise_attention(
            query,
            key,
            value,
            (padding(keys),),
            distance_scores=by_distance,
            query_tile=tiles[0],
            key_tile=tiles[1],
        )

    def expected(query, key, value, by_distance):
        # One pair at a time: key minus query, from 1 - queries on.
        rows = [
            [by_distance[:, s - t + queries - 1] for s in range(keys)]
            for t in range(queries)
        ]
        bias = ops.stack([ops.stack(row, axis=1) for row in rows], axis=1)
        return dense(
            query, key, value, (padding(keys),), bias[None], False, 0.0
        )

    weights = generator.normal(size=(B, H, queries, DV)).astype("float32")
    output, found = output_and_gradients(blockwise, weights, tensors, False)
    wanted_output, wanted = output_and_gradients(
        expected, weights, tensors, False
    )
    np.testing.assert_allclose(output, wanted_output, atol=1e-5)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.parametrize("tiles", TILES)
def test_the_same_weights_are_dropped(tiles):
    assert_same(inputs(), (padding(),), None, True, 0.3, tiles)


@pytest.mark.parametrize("jit", [False, True])
def test_everything_at_once(jit):
    bias = np.random.default_rng(7).normal(size=BIASES[0]).astype("float32")
    masks = (padding(), some_mask())
    assert_same(inputs(), masks, bias, True, 0.3, (5, 4), jit=jit)


@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (1, 17), (17, 1), (19, 13), (12, 12)]
)
@pytest.mark.parametrize("causal", [False, True])
def test_any_length_will_do(queries, keys, causal):
    # More queries than keys: the first ones see nothing of the past.
    assert_same(inputs(queries, keys), (), None, causal, 0.0, (4, 6))


@settings(max_examples=7)
@given(
    st.integers(1, 23),
    st.integers(1, 23),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
)
def test_any_length_and_any_tile_will_do(queries, keys, tiles, causal, rate):
    masks = (padding(keys), some_mask(queries, keys))
    assert_same(inputs(queries, keys), masks, None, causal, rate, tiles)


def test_large_scores_do_not_overflow():
    tensors = [*inputs(scale=30.0)[:2], inputs()[2]]
    # Scores up to 2,000 have an error of 1e-4, and so have their powers.
    assert_same(tensors, (padding(),), None, True, 0.0, (4, 6), atol=1e-4)
    found = array(blockwise_attention(*tensors, (padding(),)))
    assert np.isfinite(found).all()


def test_scores_that_rise_from_tile_to_tile_are_summed_right():
    # Each tile's largest score is far above the sums so far, or below.
    for order in (1, -1):
        key = np.linspace(-80, 80, S)[::order, None] * np.ones((B, H, 1, D))
        tensors = [np.ones((B, H, T, D)), key, inputs()[2]]
        tensors = [x.astype("float32") for x in tensors]
        assert_same(tensors, (), None, False, 0.0, (4, 2), atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_as_near_as_dense_attention_is(dtype):
    tensors = inputs()
    masks = (padding(),)
    exact = array(dense(*tensors, masks, None, True, 0.0))
    half = [ops.cast(x, dtype) for x in tensors]
    found = blockwise_attention(*half, masks, None, True, 0.0, None, 4, 6)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    other = dense(*half, masks, None, True, 0.0)
    errors = [
        abs(array(ops.cast(x, "float32")) - exact).max() for x in (found, other)
    ]
    # The sums of each tile are rounded.
    assert errors[0] < 2.5 * errors[1]
    by_tensor, _ = gradients(
        lambda *x: ops.sum(
            ops.cast(
                blockwise_attention(
                    *(ops.cast(y, dtype) for y in x),
                    (padding(), some_mask()),
                    query_tile=4,
                    key_tile=6,
                ),
                "float32",
            )
        ),
        tensors,
    )
    assert all(np.isfinite(gradient).all() for gradient in by_tensor)
    assert (by_tensor[0][:, :, 0] == 0.0).all()


def test_a_query_without_keys_gives_zeros():
    masks = (padding(), some_mask())
    found = array(blockwise_attention(*inputs(), masks, None, True))
    assert (found[:, :, 0] == 0.0).all()
    nothing = array(blockwise_attention(*inputs(), (masks[0] & False,)))
    assert (nothing == 0.0).all()


def test_future_tiles_are_not_even_read():
    # What a hidden tile holds cannot matter, be it not a number.
    query, key, value = inputs(S, S)
    expected = array(
        blockwise_attention(query, key, value, (), None, True, 0.0, None, 4, 4)
    )
    key[:, :, 8:], value[:, :, 8:] = np.nan, np.nan
    found = array(
        blockwise_attention(query, key, value, (), None, True, 0.0, None, 4, 4)
    )
    np.testing.assert_array_equal(found[:, :, :8], expected[:, :, :8])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropout": 0.1}, "needs a `seed`"),
        ({"dropout": 1.0}, "dropout"),
        ({"query_tile": 0}, "query_tile"),
        ({"key_tile": 2.5}, "key_tile"),
    ],
)
def test_wrong_arguments_are_told(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        blockwise_attention(*inputs(), **arguments)


LONG = """
import resource, sys
import numpy as np
import keras
from keras import ops
sys.path.insert(0, sys.argv[2])
from backend_functions import gradients
from keras_tfm.ops.blockwise_attention import blockwise_attention

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def run(length):
    x = np.random.default_rng(0).normal(size=(1, 2, length, 16))
    x = x.astype("float32")
    found, _ = gradients(
        lambda *x: ops.sum(blockwise_attention(*x, use_causal_mask=True)),
        (x, x, x),
        jit=True,
    )
    assert all(np.isfinite(g).all() for g in found)

run(1031)  # Compiles: the compiler's own memory is in the peak then.
before = peak()
run(int(sys.argv[1]))
print(peak() - before)
"""


def test_memory_does_not_hold_the_scores(fresh_process):
    from pathlib import Path

    tests = Path(__file__).resolve().parents[1]
    length = 12007
    printed = fresh_process(LONG, length, tests)
    # In MiB. One array of all scores takes 1,100, and dense attention three.
    assert float(printed.split()[-1]) < 2 * length**2 * 4 / 2**20 / 8

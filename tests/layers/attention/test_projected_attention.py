"""What both multi-head attentions have in common: arguments and dropout."""

import numpy as np
import pytest
from keras import ops

from keras_tfm.layers import MultiHeadAttention
from keras_tfm.layers import MultiHeadSelfAttention

B, T, H, D = 2, 5, 3, 7
E = H * D
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")

both = pytest.mark.parametrize(
    ("cls", "count"), [(MultiHeadSelfAttention, 1), (MultiHeadAttention, 2)]
)


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 0}, "Received: num_heads=0"),
        ({"num_heads": 2.0}, r"Received: num_heads=2\.0"),
        ({"key_dim": 0}, "Received: key_dim=0"),
        ({"key_dim": -1}, "Received: key_dim=-1"),
        ({"value_dim": 0}, "Received: value_dim=0"),
        ({"dropout": 1}, "Received: dropout=1"),
        ({"dropout": -0.1}, r"Received: dropout=-0\.1"),
    ],
)
def test_a_nonsense_argument_is_an_error(cls, count, options, message):
    with pytest.raises(ValueError, match=message):
        cls(**{"num_heads": H, **options})


@both
def test_a_width_that_does_not_divide_is_an_error(cls, count):
    layer = cls(8)
    message = "`hidden_dim` must be divisible by `num_heads`"
    with pytest.raises(ValueError, match=message) as error:
        layer.build(*[(B, T, 100)] * count)
    assert "hidden_dim=100, num_heads=8. Try hidden_dim=96" in str(error.value)


@both
def test_a_given_head_size_frees_the_width(cls, count):
    layer = cls(8, key_dim=2)
    assert tuple(layer(*[X[..., :13]] * count).shape) == (B, T, 13)


@both
def test_dropout_scales_what_it_leaves(cls, count):
    # Values of 1 make the output the sum of the weights that are left.
    layer = cls(1, key_dim=1, dropout=0.5, use_bias=False)
    layer.build(*[(1, 40, 1)] * count)
    query_key_value = np.array([[0.0, 0.0, 1.0]])
    kernels = np.split(query_key_value, 1 if count == 1 else 3, axis=1)
    layer.set_weights([*kernels, np.ones((1, 1))])
    ones = np.ones((1, 40, 1), "float32")
    output, weights = layer(
        *[ones] * count, training=True, return_attention_scores=True
    )
    output = ops.convert_to_numpy(output).ravel()
    # A sum of k doubled weights of 1 / 40 each.
    np.testing.assert_allclose(output * 20, np.round(output * 20), atol=1e-4)
    assert output.std() > 0.0
    np.testing.assert_allclose(weights, 1 / 40, atol=1e-6)


@both
def test_scores_are_float32_under_every_policy(cls, count):
    layer = cls(H, dtype="mixed_bfloat16")
    _, weights = layer(*[X] * count, return_attention_scores=True)
    np.testing.assert_allclose(
        ops.convert_to_numpy(weights).sum(-1), 1.0, atol=1e-6
    )


@both
def test_masks_of_none_are_no_masks(cls, count):
    layer = cls(H)
    plain = ops.convert_to_numpy(layer(*[X] * count))
    everything = layer(
        *[X] * count,
        padding_mask=np.ones((B, T), bool),
        attention_mask=np.ones((T, T), bool),
    )
    nothing = layer(*[X] * count, padding_mask=None, attention_mask=None)
    np.testing.assert_array_equal(ops.convert_to_numpy(nothing), plain)
    np.testing.assert_allclose(everything, plain, atol=1e-6)

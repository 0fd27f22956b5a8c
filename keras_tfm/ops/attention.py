"""Scaled dot-product attention: the weights and the weighted sum.

Shape letters: B batch, H heads, T query length, S key length, D head size.
"""

import numpy as np
from keras import ops

# The lowest float32: softmax gives it a weight of exactly 0 beside any score.
LOWEST_SCORE = float(np.finfo("float32").min)


def attention_weights(query, key, mask=None, position_bias=None):
    """Softmax over the keys of the scaled query-key products.

    `softmax(Q K^T / sqrt(D) + position_bias)`, in float32 whatever the dtype
    of the inputs. A hidden pair weighs exactly 0, and so does a whole row whose
    query may attend nowhere.

    Args:
        query: Float tensor `(B, H, T, D)`.
        key: Float tensor `(B, H, S, D)`.
        mask: Boolean tensor that broadcasts to `(B, H, T, S)`, or `None`.
        position_bias: Float tensor that broadcasts to `(B, H, T, S)`, added to
            the scores, or `None`.

    Returns:
        Float32 tensor `(B, H, T, S)` whose rows sum to 1, or to 0 where a query
        may attend nowhere.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), equation 1.
    """
    # Scaled before the product, which keeps float16 from overflowing.
    query = query * (query.shape[-1] ** -0.5)
    scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
    # Softmax in float32: half precision loses the tail of long rows.
    scores = ops.cast(scores, "float32")
    if position_bias is not None:
        scores = scores + ops.cast(position_bias, "float32")
    if mask is None:
        return _softmax(scores)
    weights = _softmax(ops.where(mask, scores, LOWEST_SCORE))
    return ops.where(mask, weights, 0.0)


def _softmax(scores):
    # Of one key, as at the first step of a decoder, the softmax is 1. Keras
    # takes that for a mistake and warns.
    if scores.shape[-1] == 1:
        return ops.ones_like(scores)
    return ops.softmax(scores, axis=-1)


def dot_product_attention(
    query, key, value, mask=None, position_bias=None, drop=None
):
    """Average the values of all keys by the weights of each query.

    Args:
        query: Float tensor `(B, H, T, D)`.
        key: Float tensor `(B, H, S, D)`.
        value: Float tensor `(B, H, S, D)`; its last size may differ.
        mask: Boolean tensor that broadcasts to `(B, H, T, S)`, or `None`.
        position_bias: Float tensor that broadcasts to `(B, H, T, S)`, or
            `None`.
        drop: Function applied to the weights before the average, such as a
            dropout, or `None`.

    Returns:
        A pair: the output `(B, H, T, D)` and the float32 weights
        `(B, H, T, S)` as they were before `drop`.

    Example:
        >>> x = ops.ones((1, 1, 2, 4))
        >>> output, weights = dot_product_attention(x, x, x)
        >>> weights.numpy().tolist()
        [[[[0.5, 0.5], [0.5, 0.5]]]]
    """
    weights = attention_weights(query, key, mask, position_bias)
    used = ops.cast(weights, value.dtype)
    used = used if drop is None else drop(used)
    return ops.matmul(used, value), weights


def split_heads(sequence, num_heads):
    """Cut the channels into heads: `(B, T, H * D)` to `(B, H, T, D)`."""
    length = ops.shape(sequence)[1]
    head_size = sequence.shape[-1] // num_heads
    heads = ops.reshape(sequence, (-1, length, num_heads, head_size))
    return ops.transpose(heads, (0, 2, 1, 3))


def join_heads(heads):
    """Put the heads side by side again: `(B, H, T, D)` to `(B, T, H * D)`."""
    _, num_heads, _, head_size = heads.shape
    length = ops.shape(heads)[2]
    sequence = ops.transpose(heads, (0, 2, 1, 3))
    return ops.reshape(sequence, (-1, length, num_heads * head_size))

"""Dropout with a mask that is a hash of the seed and the place.

Shape letters: N number of values.
"""

import math

from keras import ops

from keras_tfm.checks import check_share
from keras_tfm.ops.bit_mixing import GOLDEN
from keras_tfm.ops.bit_mixing import as_unsigned
from keras_tfm.ops.bit_mixing import mix_bits
from keras_tfm.ops.bit_mixing import unsigned


def keep_mask(shape, rate, seed):
    """Draw which values a dropout keeps.

    Each is dropped with probability `rate`, rounded to a multiple of 2^-32.

    Args:
        shape: Tuple of integers or scalar tensors, N values in all; N is below
            2^32, or the mask repeats itself.
        rate: Float in [0, 1), the share to drop.
        seed: Integer tensor `(2,)`. Other seeds give independent masks.

    Returns:
        Boolean tensor of that shape, `True` where a value is kept.

    Example:
        >>> mask = keep_mask((2, 1000), 0.25, [3, 5])
        >>> round(float(ops.mean(ops.cast(mask, "float32"))), 1)
        0.8
    """
    check_share("rate", rate)
    places = as_unsigned(ops.arange(math.prod(shape), dtype="int32"))
    return ops.reshape(_kept(places, rate, seed), shape)


def kept_places(rows, columns, row_length, rate, seed):
    """Draw which values of some places `keep_mask` keeps.

    The values lie in rows, N in all. Where N is above 2^32, the mask does not
    repeat itself as that of `keep_mask` would.

    Args:
        rows: Integer tensor, the rows of the places, counted from 0.
        columns: Integer tensor that broadcasts with `rows`.
        row_length: Integer or scalar tensor, below 2^31.
        rate: Float in [0, 1), the share to drop.
        seed: Integer tensor `(2,)`.

    Returns:
        Boolean tensor of the shape that `rows` and `columns` have together.

    Example:
        >>> whole = keep_mask((3, 4), 0.5, [3, 5])
        >>> part = kept_places([[1], [2]], [[0, 3]], 4, 0.5, [3, 5])
        >>> part.numpy().tolist() == whole.numpy()[1:, [0, 3]].tolist()
        True
    """
    check_share("rate", rate)
    rows, row_length = as_unsigned(rows), as_unsigned(row_length)
    places = rows * row_length + as_unsigned(columns)
    # How often the places have passed 2^32, or a little less.
    round_length = unsigned(2**32 - 1) // row_length
    return _kept(places, rate, seed, rows // round_length)


def _kept(places, rate, seed, rounds=None):
    first, second = as_unsigned(seed)[0], as_unsigned(seed)[1]
    # Each word of the seed changes where the counter starts, and the hash.
    start = mix_bits(ops.bitwise_xor(mix_bits(first), second))
    key = mix_bits(start + first + unsigned(GOLDEN))
    if rounds is not None:
        key = ops.bitwise_xor(key, mix_bits(rounds))
    bits = mix_bits(places * unsigned(GOLDEN) + start, key)
    least = min(round(rate * 2**32), 2**32 - 1)
    return bits >= unsigned(least)


def dropout(values, rate, seed):
    """Set a random share of the values to 0 and scale up the others.

    The mean stays as it is: what is kept is divided by `1 - rate`.

    Args:
        values: Float tensor of any shape.
        rate: Float in [0, 1), the share to drop.
        seed: Integer tensor `(2,)`, see `keep_mask`.

    Returns:
        Tensor as `values`.

    Example:
        >>> dropped = dropout(ops.ones((1, 1000)), 0.5, [3, 5])
        >>> sorted(set(dropped.numpy().ravel().tolist()))
        [0.0, 2.0]

    Reference:
        [Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html),
        scaled in training as is usual since.
    """
    if not check_share("rate", rate):
        return values
    keep = keep_mask(ops.shape(values), rate, seed)
    scale = ops.cast(1.0 / (1.0 - rate), values.dtype)
    return ops.where(keep, values * scale, ops.zeros((), values.dtype))

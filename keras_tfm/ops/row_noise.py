"""Random numbers that depend on a row's own seed, whatever its batch.

Shape letters: B batch, V vocabulary.

Keras draws a whole tensor from one seed, so that what a row gets depends on its
place. Here every number is a hash of the seeds, the position and its column,
as in a counter-based generator.
"""

import numpy as np
from keras import ops

# Odd constants of good mixers: the golden ratio, and those of MurmurHash3's
# last step.
_GOLDEN = 0x9E3779B9
_FIRST, _SECOND = 0x85EBCA6B, 0xC2B2AE35


def row_uniform(seed, row_seeds, index, size):
    """Draw uniform numbers for each row.

    Args:
        seed: Integer, of the whole call.
        row_seeds: Integer tensor `(B,)`.
        index: Integer or scalar tensor, such as the position in a sequence.
        size: Positive integer, numbers for each row.

    Returns:
        Float32 tensor `(B, size)` above 0 and below 1.

    Example:
        >>> both = row_uniform(7, ops.array([3, 5]), 0, 4)
        >>> alone = row_uniform(7, ops.array([5]), 0, 4)
        >>> bool(ops.all(both[1] == alone[0]))
        True

    Reference:
        [Salmon et al., 2011](https://doi.org/10.1145/2063384.2063405) for the
        idea of hashing a counter; the hash is MurmurHash3's last step, twice.
    """
    state = _mixed(_unsigned(seed % 2**32))
    state = _mixed(ops.bitwise_xor(_cast(row_seeds), state))
    state = _mixed(ops.bitwise_xor(_cast(index) * _unsigned(_GOLDEN), state))
    columns = ops.arange(size, dtype="int32")
    columns = _cast(columns) * _unsigned(_GOLDEN)
    bits = _mixed(_mixed(ops.expand_dims(state, -1) + columns))
    # The 23 bits of a float's fraction, and half of the last one: never 0.
    high = ops.cast(ops.right_shift(bits, _unsigned(9)), "float32")
    return (high + 0.5) * 2.0**-23


def row_gumbel(seed, row_seeds, index, size):
    """Draw numbers of the standard Gumbel distribution, see `row_uniform`.

    The largest of log-probabilities with this noise falls on each as often as
    its probability says.
    """
    return -ops.log(-ops.log(row_uniform(seed, row_seeds, index, size)))


def row_seeds(ids, real):
    """Make a seed of what a row holds, whatever its padding.

    Args:
        ids: Integer tensor `(B, S)`.
        real: Boolean tensor `(B, S)`, the places that count.

    Returns:
        Int32 tensor `(B,)`.

    Example:
        >>> ids = ops.array([[5, 6, 0], [5, 6, 7]])
        >>> seeds = row_seeds(ids, ids != 0)
        >>> bool(seeds[0] == row_seeds(ids[:1, :2], ids[:1, :2] != 0)[0])
        True
    """
    places = _cast(ops.arange(ids.shape[1] or ops.shape(ids)[1], dtype="int32"))
    bits = _mixed(_mixed(_cast(ids)) + places * _unsigned(_GOLDEN))
    # 22 bits each, so that the sum of 512 of them fits.
    bits = ops.where(real, ops.right_shift(bits, _unsigned(10)), _unsigned(0))
    return ops.sum(ops.cast(bits, "int32"), axis=1)


def _mixed(bits):
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, _unsigned(16)))
    bits = bits * _unsigned(_FIRST)
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, _unsigned(13)))
    bits = bits * _unsigned(_SECOND)
    return ops.bitwise_xor(bits, ops.right_shift(bits, _unsigned(16)))


def _unsigned(number):
    return ops.convert_to_tensor(np.uint32(number))


def _cast(tensor):
    return ops.cast(ops.convert_to_tensor(tensor), "uint32")

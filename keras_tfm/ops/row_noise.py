"""Random numbers that depend on a row's own seed, whatever its batch.

Shape letters: B batch, V vocabulary.

Keras draws a whole tensor from one seed, so that what a row gets depends on its
place. Here every number is a hash of the seeds, the position and its column,
as in a counter-based generator.
"""

from keras import ops

from keras_tfm.ops.bit_mixing import GOLDEN
from keras_tfm.ops.bit_mixing import as_unsigned
from keras_tfm.ops.bit_mixing import mix_bits
from keras_tfm.ops.bit_mixing import unsigned


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
    state = mix_bits(unsigned(seed % 2**32))
    state = mix_bits(ops.bitwise_xor(as_unsigned(row_seeds), state))
    state = mix_bits(
        ops.bitwise_xor(as_unsigned(index) * unsigned(GOLDEN), state)
    )
    columns = ops.arange(size, dtype="int32")
    columns = as_unsigned(columns) * unsigned(GOLDEN)
    bits = mix_bits(mix_bits(ops.expand_dims(state, -1) + columns))
    # The 23 bits of a float's fraction, and half of the last one: never 0.
    high = ops.cast(ops.right_shift(bits, unsigned(9)), "float32")
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
    places = as_unsigned(
        ops.arange(ids.shape[1] or ops.shape(ids)[1], dtype="int32")
    )
    bits = mix_bits(mix_bits(as_unsigned(ids)) + places * unsigned(GOLDEN))
    # 22 bits each, so that the sum of 512 of them fits.
    bits = ops.where(real, ops.right_shift(bits, unsigned(10)), unsigned(0))
    return ops.sum(ops.cast(bits, "int32"), axis=1)

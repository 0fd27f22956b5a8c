"""Random bits as hashes of a counter: cheap, and the same wherever computed.

Uniform numbers, noise and dropout masks are made of them. A hash needs no state
and no neighbour, so that XLA computes it inside the loop that uses it.

Reference:
    [Salmon et al., 2011](https://doi.org/10.1145/2063384.2063405) for random
    numbers as hashes of a counter.
"""

import numpy as np
from keras import ops

# The golden ratio, an odd number: it spreads neighbouring counters.
GOLDEN = 0x9E3779B9
# Odd constants of MurmurHash3's last step.
_FIRST, _SECOND = 0x85EBCA6B, 0xC2B2AE35


def mix_bits(bits, key=None):
    """Hash unsigned integers, one to one: each bit changes about half of all.

    The last step of MurmurHash3.

    Args:
        bits: Unsigned tensor of any shape, uint32.
        key: Uint32 scalar tensor that chooses one of 2^32 such hashes, or
            `None` for MurmurHash3's own, which is that of the key 0.

    Returns:
        Uint32 tensor of the same shape.

    Example:
        >>> hex(int(mix_bits(unsigned(1))))
        '0x514e28b7'
    """
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, unsigned(16)))
    bits = bits * unsigned(_FIRST)
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, unsigned(13)))
    if key is not None:
        bits = ops.bitwise_xor(bits, key)
    bits = bits * unsigned(_SECOND)
    return ops.bitwise_xor(bits, ops.right_shift(bits, unsigned(16)))


def unsigned(number):
    """Make a uint32 scalar tensor of an integer from 0 to 2**32 - 1."""
    return ops.convert_to_tensor(np.uint32(number))


def as_unsigned(tensor):
    """Cast integers of any kind to uint32."""
    return ops.cast(ops.convert_to_tensor(tensor), "uint32")

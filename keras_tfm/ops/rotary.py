"""Rotary positions: queries and keys turned by angles that grow with position.

Shape letters: B batch, T length, H heads, D head size.
"""

import numpy as np
from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int

PAIRINGS = ("interleaved", "halves")


def rotary_frequencies(rotary_dim, max_wavelength=10000.0):
    """Return how far each pair of channels turns from one position to the next.

    Pair `i` turns by `max_wavelength ** (-2 i / rotary_dim)` radians.

    Args:
        rotary_dim: Positive even integer, the channels that turn.
        max_wavelength: Positive float, in tokens, divided by 2 pi.

    Returns:
        NumPy float32 array of `rotary_dim // 2` angles in radians.

    Example:
        >>> rotary_frequencies(4, 100.0).round(3).tolist()
        [1.0, 0.10000000149011612]
    """
    check_positive_int("rotary_dim", rotary_dim)
    check_positive("max_wavelength", max_wavelength)
    if rotary_dim % 2:
        raise ValueError(
            "Rotary positions turn pairs of channels: `rotary_dim` must be "
            f"even. Received: rotary_dim={rotary_dim}. Try "
            f"rotary_dim={rotary_dim - 1}; the other channels stay as they are."
        )
    exponents = np.arange(0, rotary_dim, 2) / rotary_dim
    return (float(max_wavelength) ** -exponents).astype("float32")


def rotate_by_position(
    heads,
    positions,
    rotary_dim=None,
    max_wavelength=10000.0,
    pairing="interleaved",
):
    """Turn the channels of queries or keys by their position.

    The product of a query at position t and a key at position s then depends on
    the two vectors and on `s - t` alone.

    Args:
        heads: Float tensor `(B, H, T, D)`.
        positions: Integer tensor `(T,)` or `(B, T)`, in tokens.
        rotary_dim: Positive even integer, at most D: so many channels turn and
            the rest stays. Defaults to D.
        max_wavelength: Positive float, in tokens, divided by 2 pi, of the
            slowest pair but one. Defaults to `10000.0`.
        pairing: `"interleaved"`, channels 2i and 2i + 1 turn together, or
            `"halves"`, channels i and i + rotary_dim / 2.

    Returns:
        Tensor as `heads`; the angles are computed in float32.

    Raises:
        ValueError: If `rotary_dim` is odd or greater than D, or `pairing` is
            not one of those named.

    Example:
        >>> heads = ops.array([[[[1.0, 0.0], [1.0, 0.0]]]])
        >>> rotate_by_position(heads, [0, 1]).numpy().round(3).tolist()
        [[[[1.0, 0.0], [0.5400000214576721, 0.8410000205039978]]]]

    Reference:
        [Su et al., 2021](https://arxiv.org/abs/2104.09864), equation 34, is
        `pairing="interleaved"`. GPT-NeoX and Llama pair halves: the channels of
        their weights are permuted.
    """
    size = heads.shape[-1]
    rotary_dim = size if rotary_dim is None else rotary_dim
    frequencies = rotary_frequencies(rotary_dim, max_wavelength)
    check_choice("pairing", pairing, PAIRINGS)
    if rotary_dim > size:
        raise ValueError(
            "`rotary_dim` must not exceed the size of a head. Received: "
            f"rotary_dim={rotary_dim}, size of a head: {size}."
        )
    # In float32: in half precision angles are wrong from position 2048 on.
    positions = ops.expand_dims(ops.cast(positions, "float32"), -1)
    angles = positions * ops.convert_to_tensor(frequencies)
    if len(angles.shape) == 3:
        angles = ops.expand_dims(angles, 1)
    turned = ops.cast(heads[..., :rotary_dim], "float32")
    first, second = _pairs(turned, pairing)
    cosines, sines = ops.cos(angles), ops.sin(angles)
    pairs = (
        first * cosines - second * sines,
        second * cosines + first * sines,
    )
    if pairing == "interleaved":
        turned = ops.reshape(ops.stack(pairs, axis=-1), ops.shape(turned))
    else:
        turned = ops.concatenate(pairs, axis=-1)
    turned = ops.cast(turned, heads.dtype)
    if rotary_dim == size:
        return turned
    return ops.concatenate([turned, heads[..., rotary_dim:]], axis=-1)


def _pairs(channels, pairing):
    if pairing == "interleaved":
        return channels[..., 0::2], channels[..., 1::2]
    return ops.split(channels, 2, axis=-1)

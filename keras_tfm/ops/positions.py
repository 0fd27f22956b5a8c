"""Sinusoids that tell positions apart.

Shape letters: B batch, T length, E hidden_dim.
"""

import numpy as np
from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int

LAYOUTS = ("concat", "interleaved")
DENOMINATORS = ("tensor2tensor", "paper")


def sinusoid_frequencies(
    hidden_dim, denominator="tensor2tensor", max_wavelength=10000.0
):
    """Return the falling frequencies of the sine and cosine pairs.

    With `n` pairs, frequency `i` is `max_wavelength ** (-i / x)`, where `x` is
    `n - 1` with `"tensor2tensor"` (the last wavelength is the longest) and
    `hidden_dim / 2` with `"paper"`.

    Args:
        hidden_dim: Positive integer, the number of channels.
        denominator: `"tensor2tensor"` or `"paper"`.
        max_wavelength: Positive float, in tokens, divided by 2 pi.

    Returns:
        NumPy float32 array of `hidden_dim // 2` frequencies, and one more with
        `"paper"` where `hidden_dim` is odd (a sine without its cosine).

    Example:
        >>> sinusoid_frequencies(4, "tensor2tensor", 100.0).round(3).tolist()
        [1.0, 0.009999999776482582]
    """
    check_positive_int("hidden_dim", hidden_dim)
    check_choice("denominator", denominator, DENOMINATORS)
    check_positive("max_wavelength", max_wavelength)
    if denominator == "tensor2tensor":
        num_pairs = hidden_dim // 2
        exponents = np.arange(num_pairs) / max(num_pairs - 1, 1)
    else:
        exponents = np.arange((hidden_dim + 1) // 2) / (hidden_dim / 2)
    return (float(max_wavelength) ** -exponents).astype("float32")


def sinusoids(
    positions,
    hidden_dim,
    layout="concat",
    denominator="tensor2tensor",
    max_wavelength=10000.0,
):
    """Encode positions as sines and cosines of falling frequency.

    Args:
        positions: Integer or float tensor of any shape, such as `(T,)` or
            `(B, T)`, in tokens.
        hidden_dim: Positive integer E. Odd widths work: with Tensor2Tensor's
            denominator the last channel is 0, with the paper's it is a sine.
        layout: `"concat"` (all sines, then all cosines) or `"interleaved"`
            (sine and cosine of one frequency side by side).
        denominator: `"tensor2tensor"` or `"paper"`, see
            `sinusoid_frequencies`.
        max_wavelength: Positive float, in tokens, divided by 2 pi.

    Returns:
        Float32 tensor, the shape of `positions` with E added at the end.

    Raises:
        ValueError: If `layout` or `denominator` is not one of those named.

    Example:
        >>> sinusoids([0], 4).numpy().tolist()
        [[0.0, 0.0, 1.0, 1.0]]

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.5,
        is `layout="interleaved", denominator="paper"`; the code that came with
        it, Tensor2Tensor, is the default here. They are no permutations of
        each other: the frequencies differ.
    """
    check_choice("layout", layout, LAYOUTS)
    frequencies = sinusoid_frequencies(hidden_dim, denominator, max_wavelength)
    # Angles in float32: in half precision they are wrong from position 2048 on.
    positions = ops.expand_dims(ops.cast(positions, "float32"), -1)
    angles = positions * ops.convert_to_tensor(frequencies)
    sines, cosines = ops.sin(angles), ops.cos(angles)
    if layout == "concat":
        cosines = cosines[..., : hidden_dim // 2]
        encoding = ops.concatenate([sines, cosines], axis=-1)
    else:
        pairs = ops.stack([sines, cosines], axis=-1)
        width = 2 * len(frequencies)
        encoding = ops.reshape(pairs, (*ops.shape(angles)[:-1], width))
        encoding = encoding[..., :hidden_dim]
    missing = hidden_dim - encoding.shape[-1]
    if missing:
        pad = [(0, 0)] * (len(encoding.shape) - 1) + [(0, missing)]
        encoding = ops.pad(encoding, pad)
    return encoding


def positions_from(length, start_index=0):
    """Number `length` positions from `start_index`: int32 tensor `(T,)`."""
    return ops.arange(length, dtype="int32") + ops.cast(start_index, "int32")


def check_positions(positions, max_sequence_length, name):
    """Raise `ValueError` if a position is known to lie beyond the table.

    A symbolic or traced tensor has no values yet and passes; compiled code
    would clamp it silently, so callers check lengths before they compile.

    Args:
        positions: Integer tensor or array of positions.
        max_sequence_length: Positive integer, the number of rows of the table.
        name: String. The name of the layer, for the message.
    """
    try:
        values = np.asarray(positions)
        largest = int(values.max()) if values.size else 0
    except Exception:  # Each backend has its own error for a tensor in tracing.
        return
    if largest >= max_sequence_length:
        raise ValueError(
            f"`{name}` knows positions 0 to {max_sequence_length - 1}. "
            f"Received position {largest}. Shorten the input, or make the "
            "layer with a larger `max_sequence_length`."
        )

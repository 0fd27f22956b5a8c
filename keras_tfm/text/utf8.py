"""UTF-8 in TensorFlow's core ops: all bytes of a batch at once.

N bytes or codes of the whole batch. A stream is the texts one after the
other: each starts with `TEXT_START` and ends with `TEXT_END`.
"""

from __future__ import annotations

import tensorflow as tf

# Beyond every byte and every code point.
TEXT_START = 0x110000
TEXT_END = 0x110001
REPLACEMENT = 0xFFFD


def byte_stream(texts: tf.Tensor) -> tf.Tensor:
    """Lay the bytes of all texts in one row.

    Args:
        texts: String tensor `(batch,)`.

    Returns:
        Int32 tensor `(N,)` of bytes and markers.

    Example:
        >>> stream = byte_stream(tf.constant(["ab", ""])).numpy().tolist()
        >>> [hex(value) for value in stream]
        ['0x110000', '0x61', '0x62', '0x110001', '0x110000', '0x110001']
    """
    joined = tf.strings.reduce_join(tf.strings.join(["\0", texts, "\0"]))
    stream = tf.cast(tf.io.decode_raw(joined, tf.uint8), tf.int32)
    ends = tf.cumsum(tf.strings.length(texts) + 2)
    starts = tf.pad(ends, [[1, 0]])[:-1]
    markers = tf.fill(tf.shape(ends), TEXT_START)
    return tf.tensor_scatter_nd_update(
        stream,
        tf.concat([starts, ends - 1], 0)[:, tf.newaxis],
        tf.concat([markers, markers + (TEXT_END - TEXT_START)], 0),
    )


def character_lengths(stream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Find where characters start and how many bytes they have.

    Args:
        stream: Int32 tensor `(N,)`. A value above 255 is a character of its
            own.

    Returns:
        Int32 tensor `(N,)` with the number of bytes of the valid character
        that starts at each place, 0 for none, and a boolean tensor `(N,)`,
        True where a character or a broken byte starts. Each broken byte
        stands alone.
    """
    second, _, _ = _following(stream)
    continues = ((stream & 0xC0) == 0x80) & (stream < 0x100)
    has_2, then_3, then_4 = _following(continues)
    has_3 = has_2 & then_3
    # Not longer than need be, no half of a surrogate pair, not above U+10FFFF.
    has_3 &= (stream != 0xE0) | (second >= 0xA0)
    has_3 &= (stream != 0xED) | (second < 0xA0)
    has_4 = has_2 & then_3 & then_4
    has_4 &= (stream != 0xF0) | (second >= 0x90)
    has_4 &= (stream != 0xF4) | (second < 0x90)
    zero = tf.zeros_like(stream)
    lengths = tf.where((stream >= 0xF0) & (stream < 0xF5) & has_4, 4, zero)
    lengths = tf.where((stream >= 0xE0) & (stream < 0xF0) & has_3, 3, lengths)
    lengths = tf.where((stream >= 0xC2) & (stream < 0xE0) & has_2, 2, lengths)
    lengths = tf.where((stream < 0x80) | (stream > 0xFF), 1, lengths)
    padded = tf.pad(lengths, [[3, 0]])
    inside = (padded[2:-1] > 1) | (padded[1:-2] > 2) | (padded[:-3] > 3)
    return lengths, ~inside


def code_points(stream: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Read the code point that starts at each place.

    Args:
        stream: Int32 tensor `(N,)` of bytes and markers.
        lengths: Int32 tensor `(N,)`, the first result of `character_lengths`.

    Returns:
        Int32 tensor `(N,)`: code points, markers as they are, and
        `REPLACEMENT` where no valid character starts.
    """
    second, third, fourth = (byte & 0x3F for byte in _following(stream))
    two = (stream & 0x1F) * 0x40 + second
    three = (stream & 0x0F) * 0x1000 + second * 0x40
    four = (stream & 0x07) * 0x40000 + second * 0x1000
    codes = tf.where(lengths == 1, stream, REPLACEMENT)
    codes = tf.where(lengths == 2, two, codes)
    codes = tf.where(lengths == 3, three + third, codes)
    return tf.where(lengths == 4, four + third * 0x40 + fourth, codes)


def encoded(codes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Spell code points in bytes.

    Args:
        codes: Int32 tensor `(N,)` of code points.

    Returns:
        Int32 tensor `(N, 4)`, whose first places hold the bytes of each code
        point, and an int32 tensor `(N,)` with their numbers.
    """
    lengths = tf.ones_like(codes)
    for limit in (0x80, 0x800, 0x10000):
        lengths += tf.cast(codes >= limit, tf.int32)
    leads = tf.gather([0, 0, 0xC0, 0xE0, 0xF0], lengths)
    columns = []
    for place in range(4):
        shift = 6 * tf.maximum(lengths - 1 - place, 0)
        byte = tf.bitwise.right_shift(codes, shift)
        if place:
            byte = 0x80 + (byte & 0x3F)
        else:
            byte += leads
        columns.append(byte)
    return tf.stack(columns, 1), lengths


def _following(stream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    padded = tf.pad(stream, [[0, 3]])
    return padded[1:-2], padded[2:-1], padded[3:]

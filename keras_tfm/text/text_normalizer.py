"""SentencePiece's normalization in core ops: rules, spaces, dummy prefix.

N bytes of the whole batch, C characters of it; see `utf8.py` for the layout.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from keras_tfm.text.sentencepiece_model import SentencePieceModel
from keras_tfm.text.utf8 import TEXT_END
from keras_tfm.text.utf8 import TEXT_START
from keras_tfm.text.utf8 import byte_stream
from keras_tfm.text.utf8 import character_lengths
from keras_tfm.text.utf8 import code_points

_SPACE = 0x20
_ESCAPED_SPACE = 0x2581
# Fields of one unit of the rules' double-array trie.
_LABEL = np.int32(-0x80000000 | 0xFF)
_HAS_VALUE = 0x100
_WIDE_OFFSET = 0x200
_VALUE = 0x7FFFFFFF


class TextNormalizer(tf.Module):
    """Turn texts into the characters that SentencePiece would segment.

    The rules are those inside the model, not Unicode's: the longest one that
    matches replaces its characters. They are a trie over bytes, which is
    walked from all characters of a batch at once.

    Args:
        model: A `SentencePieceModel`.

    Raises:
        ValueError: If a rule writes two spaces in a row, which this class
            would collapse where SentencePiece does not.

    Example:
        >>> model = SentencePieceModel(
        ...     pieces=(), scores=(), types=(), model_type=2,
        ...     byte_fallback=True, whitespace_as_suffix=False,
        ...     unknown_surface="?", charsmap=b"", add_dummy_prefix=True,
        ...     remove_extra_whitespaces=True, escape_whitespaces=True,
        ...     has_denormalizer=False,
        ... )
        >>> codes = TextNormalizer(model)(tf.constant(["  a  b "]))
        >>> "".join(map(chr, codes.numpy()[:-1]))
        '▁a▁b'
    """

    def __init__(self, model: SentencePieceModel) -> None:
        super().__init__(name="text_normalizer")
        self._add_dummy_prefix = model.add_dummy_prefix
        self._remove_extra_whitespaces = model.remove_extra_whitespaces
        self._trie = None
        if model.charsmap:
            self._trie, outputs = _split_charsmap(model.charsmap)
            self._root, self._may_match = _first_two_bytes(self._trie)
            if b"  " in outputs and model.remove_extra_whitespaces:
                raise ValueError(
                    "A normalization rule of the model writes two spaces in a "
                    "row: its texts would not get the ids of SentencePiece. "
                    "Use a model with `nmt_nfkc` or `identity`."
                )
            self._outputs, self._output_starts, self._output_sizes = (
                _decoded_outputs(outputs)
            )

    def __call__(self, texts: tf.Tensor) -> tf.Tensor:
        """Normalize a batch.

        Args:
            texts: String tensor `(batch,)`.

        Returns:
            Int32 tensor `(C,)`: the code points of all texts, a space as
            U+2581, with `TEXT_END` after each text.
        """
        stream = byte_stream(texts)
        lengths, is_start = character_lengths(stream)
        # An empty text gets no dummy prefix.
        is_prefix = (stream == TEXT_START) & (
            tf.roll(stream, -1, 0) != TEXT_END
        )
        is_start &= (stream != TEXT_START) | (
            is_prefix if self._add_dummy_prefix else False
        )
        codes = code_points(stream, lengths)
        if self._trie is None:
            codes = tf.gather(codes, _places(is_start))
        else:
            codes = self._replaced(stream, codes, lengths, is_start)
        if self._remove_extra_whitespaces:
            codes = _without_extra_spaces(codes)
        is_space = (codes == _SPACE) | (codes == TEXT_START)
        return tf.where(is_space, _ESCAPED_SPACE, codes)

    def _replaced(
        self,
        stream: tf.Tensor,
        codes: tf.Tensor,
        lengths: tf.Tensor,
        is_start: tf.Tensor,
    ) -> tf.Tensor:
        starts = _places(is_start)
        sizes, values = self._longest_rules(stream, starts)
        own_sizes = tf.maximum(tf.gather(lengths, starts), 1)

        def without_swallowed() -> tuple[tf.Tensor, ...]:
            kept = _places(~_swallowed(starts, sizes, own_sizes))
            return tuple(tf.gather(x, kept) for x in (starts, sizes, values))

        starts, sizes, values = tf.cond(
            tf.reduce_any(sizes > own_sizes),
            without_swallowed,
            lambda: (starts, sizes, values),
        )
        # Characters without a rule write themselves.
        has_rule = sizes > 0
        codes = tf.gather(codes, starts)
        own = tf.size(self._outputs) + tf.range(tf.size(codes))
        first = tf.where(has_rule, tf.gather(self._output_starts, values), own)
        number = tf.where(has_rule, tf.gather(self._output_sizes, values), 1)
        return tf.gather(
            tf.concat([self._outputs, codes], 0),
            tf.ragged.range(first, first + number).flat_values,
        )

    def _longest_rules(
        self, stream: tf.Tensor, starts: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return for each start the bytes of its longest rule, and its value.

        Both are 0 where no rule matches.
        """
        trie = tf.constant(self._trie)
        # Most characters begin no rule: their first two bytes tell.
        first = tf.minimum(stream, 0x100)
        two = first * 0x101 + tf.roll(first, -1, 0)
        two = tf.gather(two, starts)
        alive = _places(tf.gather(tf.constant(self._may_match), two))

        def step(
            depth: tf.Tensor,
            alive: tf.Tensor,
            nodes: tf.Tensor,
            sizes: tf.Tensor,
            values: tf.Tensor,
        ) -> tuple[tf.Tensor, ...]:
            byte = tf.gather(stream, tf.gather(starts, alive) + depth)
            # A marker is no byte: no label equals it.
            nodes = tf.bitwise.bitwise_xor(nodes, byte & 0xFF)
            units = tf.gather(trie, nodes)
            found = _places((units & _LABEL) == byte)
            alive, nodes, units = (
                tf.gather(x, found) for x in (alive, nodes, units)
            )
            nodes = tf.bitwise.bitwise_xor(nodes, _offsets(units))
            ended = _places((units & _HAS_VALUE) > 0)
            value = tf.gather(trie, tf.gather(nodes, ended)) & _VALUE
            where = tf.gather(alive, ended)[:, tf.newaxis]
            depth += 1
            sizes = tf.tensor_scatter_nd_update(
                sizes, where, tf.fill(tf.shape(value), depth)
            )
            values = tf.tensor_scatter_nd_update(values, where, value)
            return depth, alive, nodes, sizes, values

        zeros = tf.zeros_like(starts)
        any_size = tf.TensorShape([None])
        *_, sizes, values = tf.while_loop(
            lambda depth, alive, *_: tf.size(alive) > 0,
            step,
            (0, alive, tf.zeros_like(alive) + self._root, zeros, zeros),
            shape_invariants=(tf.TensorShape([]), *[any_size] * 4),
        )
        return sizes, values


def _offsets(units: tf.Tensor) -> tf.Tensor:
    wide = tf.bitwise.right_shift(units & _WIDE_OFFSET, 6)
    return tf.bitwise.left_shift(tf.bitwise.right_shift(units, 10), wide)


def _places(mask: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.reshape(tf.where(mask), [-1]), tf.int32)


def _swallowed(
    starts: tf.Tensor, sizes: tf.Tensor, own_sizes: tf.Tensor
) -> tf.Tensor:
    """Say which characters an earlier rule of several characters replaces."""
    longer = _places(sizes > own_sizes)
    begins = tf.gather(starts, longer)
    ends = begins + tf.gather(sizes, longer)
    # Rules apply from left to right: of those that overlap, the first wins,
    # and the next one starts where it ends. Each turn follows such chains
    # twice as far.
    number = tf.size(longer)
    following = tf.concat([tf.searchsorted(begins, ends), [number]], 0)
    reached = tf.one_hot(0, number + 1, True, False, dtype=tf.bool)

    def step(
        distance: tf.Tensor, following: tf.Tensor, reached: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        where = tf.gather(following, _places(reached))[:, tf.newaxis]
        reached = tf.tensor_scatter_nd_update(
            reached, where, tf.fill([tf.shape(where)[0]], True)
        )
        return distance * 2, tf.gather(following, following), reached

    *_, reached = tf.while_loop(
        lambda distance, *_: distance <= number,
        step,
        (1, following, reached),
    )
    winners = _places(reached[:-1])
    begins, ends = tf.gather(begins, winners), tf.gather(ends, winners)
    started = tf.searchsorted(begins, starts, side="left")
    return started > tf.searchsorted(ends, starts, side="right")


def _without_extra_spaces(codes: tf.Tensor) -> tf.Tensor:
    """Keep one of several spaces, and none at either end of a text."""
    before = tf.pad(codes, [[1, 0]], constant_values=TEXT_END)[:-1]
    after_space = (before == _SPACE) | (before >= TEXT_START)
    codes = tf.gather(codes, _places((codes != _SPACE) | ~after_space))
    # Of the dummy prefix and each U+2581 nothing stays before the end, either.
    is_end = codes == TEXT_END
    is_blank = (codes == _SPACE) | (codes == _ESCAPED_SPACE)
    is_solid = ~(is_blank | (codes == TEXT_START))
    solid_ends = tf.gather(is_end, _places(is_solid))
    following = tf.cumsum(tf.cast(is_solid, tf.int32), exclusive=True)
    kept = is_end | ~tf.gather(solid_ends, following)
    return tf.gather(codes, _places(kept))


def _split_charsmap(charsmap: bytes) -> tuple[np.ndarray, bytes]:
    size = int.from_bytes(charsmap[:4], "little")
    trie = np.frombuffer(charsmap[4 : 4 + size], "<u4")
    return trie.astype(np.uint32).view(np.int32), charsmap[4 + size :]


def _first_two_bytes(trie: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the root, and which first two bytes a rule may begin with.

    Byte 256, in the last row and column, is that of the markers.
    """
    byte = np.arange(0x100)
    root = _numpy_offsets(trie[0])
    first = trie[root ^ byte]
    is_first = (first & _LABEL) == byte
    nodes = (root ^ byte)[:, np.newaxis] ^ _numpy_offsets(first)[:, np.newaxis]
    second = trie[np.where(is_first[:, np.newaxis], nodes ^ byte, 0)]
    may_match = np.zeros((0x101, 0x101), bool)
    may_match[:0x100, :0x100] = (second & _LABEL) == byte
    may_match[:0x100] |= ((first & _HAS_VALUE) > 0)[:, np.newaxis]
    may_match[:0x100] &= is_first[:, np.newaxis]
    return int(root), may_match.ravel()


def _numpy_offsets(units: np.ndarray) -> np.ndarray:
    return (units >> 10) << ((units & _WIDE_OFFSET) >> 6)


def _decoded_outputs(
    outputs: bytes,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the code points of the outputs, and where each byte's start.

    A rule's value is the place of its output's first byte; NUL ends it.
    """
    codes = np.array([ord(c) for c in outputs.decode("utf-8")], np.int32)
    bytes_ = np.frombuffer(outputs, np.uint8)
    starts = np.cumsum((bytes_ & 0xC0) != 0x80) - 1
    ends = np.append(np.flatnonzero(codes == 0), len(codes))
    sizes = ends[np.searchsorted(ends, starts)] - starts
    return codes, starts.astype(np.int32), sizes.astype(np.int32)

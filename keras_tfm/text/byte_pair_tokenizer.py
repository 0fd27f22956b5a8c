"""Subwords by SentencePiece's rules, made of TensorFlow's core ops alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_tfm.text.pair_merger import PairMerger
from keras_tfm.text.sentencepiece_model import PieceType
from keras_tfm.text.sentencepiece_model import SentencePieceModel
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.text_normalizer import TextNormalizer
from keras_tfm.text.tokenizer import Tokenizer
from keras_tfm.text.tokenizer import as_dense_ids
from keras_tfm.text.tokenizer import as_string_tensor
from keras_tfm.text.utf8 import TEXT_END
from keras_tfm.text.utf8 import character_lengths
from keras_tfm.text.utf8 import encoded

_BYTE_PAIR_ENCODING = 2
_SPACE = "\u2581"


class BytePairTokenizer(Tokenizer):
    """Cut text as SentencePieceTokenizer does, without its ops.

    For a SavedModel that must load with `import tensorflow` alone: on a
    server, in a C program, where `tensorflow_text` is not. Ids and texts are
    those of `SentencePieceTokenizer` for every text, broken UTF-8 included:
    merges, normalization rules and the handling of spaces all follow the
    bytes of the model. Models that it cannot follow to the letter are
    refused: unigram models, and those without byte fallback, with pieces
    defined by the user, or with rules for decoding.

    What differs is the time. A thousand lines take about twice as long, and
    one line takes 2 ms instead of 0.1; `benchmarks/tokenizer_parity.py`
    measures both. A long text without spaces takes memory by its length, but
    one made to resist parallel merges ("itzt" a thousand times, for some
    models) takes a turn of the loop for each merge. So prepare data with
    `SentencePieceTokenizer`, and serve with this one.

    Args:
        model_proto: Bytes. A SentencePiece model whose pad, start, end and
            unknown ids are 0, 1, 2 and 3, as `SentencePieceTokenizer.train`
            makes it.

    Raises:
        ValueError: If the bytes are no such model.

    Example:
        >>> texts = ["a cat sat on a mat", "a dog ate a cat"] * 3
        >>> trained = SentencePieceTokenizer.train(texts, 290)
        >>> tokenizer = BytePairTokenizer.from_sentencepiece(trained)
        >>> ids = tokenizer.tokenize(["a cat", "猫"])
        >>> tokenizer.pieces(ids.to_list()[1])
        ['▁', '<0xE7>', '<0x8C>', '<0xAB>']
        >>> [text.decode() for text in tokenizer.detokenize(ids).numpy()]
        ['a cat', '猫']
    """

    file_name: ClassVar[str] = "byte_pair.model"

    def __init__(self, model_proto: bytes) -> None:
        super().__init__(name="byte_pair_tokenizer")
        model = SentencePieceModel.parse(model_proto)
        _check_model(model)
        self.model_proto = bytes(model_proto)
        self._pieces = model.pieces
        # NumPy arrays become constants of the two graphs below.
        self._byte_of_id, self._id_of_byte = _byte_tables(model)
        self._is_silent, self._spellings = _spellings(model)
        self._normalize = TextNormalizer(model)
        normal = {
            piece: number
            for number, piece in enumerate(model.pieces)
            if model.types[number] == PieceType.NORMAL
        }
        end_symbol = len(model.pieces)
        self._merge = PairMerger(normal, end_symbol)
        characters = {ord(p): n for p, n in normal.items() if len(p) == 1}
        characters[TEXT_END] = end_symbol
        # An attribute, so that it is tracked and saved.
        self._characters = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(characters), tf.int64),
                tf.constant(list(characters.values()), tf.int64),
            ),
            default_value=-1,
        )

    @classmethod
    def from_sentencepiece(
        cls, tokenizer: SentencePieceTokenizer
    ) -> BytePairTokenizer:
        """Make the same tokenizer of core ops.

        Args:
            tokenizer: A `SentencePieceTokenizer`.

        Returns:
            A `BytePairTokenizer` with the same ids and texts.

        Raises:
            TypeError: If `tokenizer` is none.
        """
        if not isinstance(tokenizer, SentencePieceTokenizer):
            raise TypeError(
                "`tokenizer` must be a SentencePieceTokenizer. "
                f"Received: {tokenizer!r} of type {type(tokenizer).__name__}."
            )
        return cls(tokenizer.model_proto)

    @property
    def vocabulary_size(self) -> int:
        return len(self._pieces)

    def tokenize(self, texts: Sequence[str] | tf.Tensor) -> tf.RaggedTensor:
        ids, lengths = self._tokenize(as_string_tensor(texts))
        return tf.RaggedTensor.from_row_lengths(ids, lengths, validate=False)

    def detokenize(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        return self._detokenize(as_dense_ids(ids, self.vocabulary_size))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        size = self.vocabulary_size
        return [
            self._pieces[i if 0 <= i < size else self.unknown_id] for i in ids
        ]

    def save(self, folder: str | Path) -> Path:
        return self._write_file(folder, self.model_proto)

    @classmethod
    def load(cls, folder: str | Path) -> BytePairTokenizer:
        return cls(cls._read_file(folder))

    # A function of its own: one graph, however often it is called.
    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    def _tokenize(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        codes = self._normalize(texts)
        symbols = self._characters.lookup(tf.cast(codes, tf.int64))
        symbols = tf.cast(symbols, tf.int32)
        symbols = tf.cond(
            tf.reduce_any(symbols < 0),
            lambda: self._with_bytes(symbols, codes),
            lambda: symbols,
        )
        ids = self._merge(symbols)
        is_id = ids < self.vocabulary_size
        ends = tf.reshape(tf.where(~is_id), [-1])
        lengths = ends - tf.pad(ends + 1, [[1, 0]])[:-1]
        return tf.boolean_mask(ids, is_id), lengths

    def _with_bytes(self, symbols: tf.Tensor, codes: tf.Tensor) -> tf.Tensor:
        """Put the bytes of each unknown character in its place."""
        bytes_, lengths = encoded(codes)
        place = tf.range(tf.size(symbols))
        is_known = symbols >= 0
        first = tf.where(is_known, place, tf.size(symbols) + 4 * place)
        number = tf.where(is_known, 1, lengths)
        byte_ids = tf.gather(tf.constant(self._id_of_byte), bytes_ & 0xFF)
        return tf.gather(
            tf.concat([symbols, tf.reshape(byte_ids, [-1])], 0),
            tf.ragged.range(first, first + number).flat_values,
        )

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    def _detokenize(self, ids: tf.Tensor) -> tf.Tensor:
        size = self.vocabulary_size
        # A last column of pads keeps the bytes of two rows apart.
        ids = tf.pad(ids, [[0, 0], [0, 1]], constant_values=self.pad_id)
        bytes_ = tf.gather(tf.constant(self._byte_of_id), tf.reshape(ids, [-1]))
        lengths, is_start = character_lengths(bytes_)
        is_broken = tf.reshape(is_start & (lengths == 0), tf.shape(ids))
        # Up to the first piece that writes something, spaces are left out.
        at_start = tf.math.cumprod(
            tf.gather(tf.constant(self._is_silent), ids), axis=1, exclusive=True
        )
        place = tf.where(is_broken, 2 * size, ids + size * at_start)
        spellings = tf.constant(self._spellings, tf.string)
        return tf.strings.reduce_join(tf.gather(spellings, place), axis=1)


def _check_model(model: SentencePieceModel) -> None:
    ids = (
        Tokenizer.pad_id,
        Tokenizer.start_id,
        Tokenizer.end_id,
        Tokenizer.unknown_id,
    )
    special = [PieceType.CONTROL] * 3 + [PieceType.UNKNOWN]
    normal = [
        score
        for score, kind in zip(model.scores, model.types, strict=True)
        if kind == PieceType.NORMAL
    ]
    others = set(model.types[4:]) - {PieceType.NORMAL, PieceType.BYTE}
    for is_right, wanted, received in (
        (
            model.model_type == _BYTE_PAIR_ENCODING,
            "do byte-pair encoding (model type 2)",
            f"model type {model.model_type}",
        ),
        (
            model.byte_fallback and model.types.count(PieceType.BYTE) == 256,
            "spell unknown characters in bytes (`byte_fallback`)",
            f"{model.types.count(PieceType.BYTE)} byte pieces",
        ),
        (
            list(model.types[:4]) == special
            and model.pieces[:4] == Tokenizer.special_pieces,
            f"have the pad, start, end and unknown ids {ids}",
            f"the pieces {model.pieces[:4]}",
        ),
        (
            not others,
            "have no user-defined, control or unused pieces of its own",
            f"piece types {sorted(others)}",
        ),
        (
            all(a > b for a, b in itertools.pairwise(normal)),
            "list its pieces in the order of their merges",
            "scores that do not fall",
        ),
        (
            model.escape_whitespaces and not model.whitespace_as_suffix,
            "mark the start of a word with U+2581",
            "another mark of spaces",
        ),
        (
            not model.has_denormalizer,
            "decode without rules",
            "denormalization rules",
        ),
    ):
        if not is_right:
            raise ValueError(
                f"A model for BytePairTokenizer must {wanted}. "
                f"Received: {received}. "
                "Train it with `SentencePieceTokenizer.train`."
            )


def _byte_tables(model: SentencePieceModel) -> tuple[np.ndarray, np.ndarray]:
    """Return the byte that each id stands for, and the id of each byte."""
    byte_of_id = np.full(len(model.pieces), TEXT_END, np.int32)
    id_of_byte = np.zeros(256, np.int32)
    for number, (piece, kind) in enumerate(
        zip(model.pieces, model.types, strict=True)
    ):
        if kind == PieceType.BYTE:
            byte = int(piece[3:5], 16)
            byte_of_id[number] = byte
            id_of_byte[byte] = number
    return byte_of_id, id_of_byte


def _spellings(model: SentencePieceModel) -> tuple[np.ndarray, np.ndarray]:
    """Return which ids leave the text empty at its start, and what ids write.

    The second holds the spelling of each id, then that at a text's start, and
    last the sign for a broken byte.
    """
    strips = model.add_dummy_prefix or model.remove_extra_whitespaces
    inside, at_start, is_silent = [], [], []
    for piece, kind in zip(model.pieces, model.types, strict=True):
        if kind == PieceType.BYTE:
            spelling = bytes([int(piece[3:5], 16)])
        elif kind == PieceType.CONTROL:
            spelling = b""
        elif kind == PieceType.UNKNOWN:
            spelling = model.unknown_surface.encode()
        else:
            spelling = piece.replace(_SPACE, " ").encode()
        is_normal = kind == PieceType.NORMAL
        inside.append(spelling)
        at_start.append(
            spelling[1:]
            if is_normal and strips and spelling[:1] == b" "
            else spelling
        )
        is_silent.append(
            kind == PieceType.CONTROL or (strips and piece == _SPACE)
        )
    return (
        np.array(is_silent, np.int32),
        np.array([*inside, *at_start, "\ufffd".encode()], dtype=object),
    )

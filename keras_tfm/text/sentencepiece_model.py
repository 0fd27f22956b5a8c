"""Read what a SentencePiece model file holds, without any other package."""

from __future__ import annotations

import dataclasses
import enum
import struct
from collections.abc import Iterator

# The kinds of value on the wire of a protocol buffer.
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_BYTE_FALLBACK_FIELD = 35
_WHITESPACE_AS_SUFFIX_FIELD = 24
_UNKNOWN_SURFACE_FIELD = 44
# What reading anything else than a model runs into.
_BROKEN = (AttributeError, LookupError, TypeError, ValueError, struct.error)


class PieceType(enum.IntEnum):
    """What a piece of a SentencePiece vocabulary is."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclasses.dataclass(frozen=True)
class SentencePieceModel:
    """The vocabulary and the rules of a SentencePiece model.

    Args:
        pieces: Tuple of strings, one an id.
        scores: Tuple of floats, one an id.
        types: Tuple of integers, one an id; see `PieceType`.
        model_type: Integer. 1 is unigram, 2 is byte-pair encoding.
        byte_fallback: Boolean. Whether unknown characters are spelled in
            bytes.
        whitespace_as_suffix: Boolean. Whether `▁` ends a word.
        unknown_surface: String that the unknown id reads as.
        charsmap: Bytes. The compiled normalization rules; empty for none.
        add_dummy_prefix: Boolean. Whether a text gets a space in front.
        remove_extra_whitespaces: Boolean. Whether spaces are collapsed.
        escape_whitespaces: Boolean. Whether a space becomes `▁`.
        has_denormalizer: Boolean. Whether rules change the decoded text.
    """

    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    types: tuple[int, ...]
    model_type: int
    byte_fallback: bool
    whitespace_as_suffix: bool
    unknown_surface: str
    charsmap: bytes
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    escape_whitespaces: bool
    has_denormalizer: bool

    @classmethod
    def parse(cls, model_proto: bytes) -> SentencePieceModel:
        """Read the bytes of a model.

        Args:
            model_proto: Bytes, the content of a `.model` file.

        Returns:
            A `SentencePieceModel`.

        Raises:
            ValueError: If the bytes are no such model.
        """
        try:
            model = cls._parse(bytes(model_proto))
        except _BROKEN as error:
            raise _not_a_model(model_proto) from error
        if not model.pieces:
            raise _not_a_model(model_proto)
        return model

    @classmethod
    def _parse(cls, model_proto: bytes) -> SentencePieceModel:
        pieces = []
        trainer: dict = {}
        normalizer: dict = {}
        denormalizer: dict = {}
        for number, value in _fields(model_proto):
            if number == 1:
                pieces.append(dict(_fields(value)))
            elif number == 2:
                trainer = dict(_fields(value))
            elif number == 3:
                normalizer = dict(_fields(value))
            elif number == 5:
                denormalizer = dict(_fields(value))
        surface = trainer.get(_UNKNOWN_SURFACE_FIELD, " \u2047 ".encode())
        return cls(
            pieces=tuple(piece[1].decode("utf-8") for piece in pieces),
            scores=tuple(
                struct.unpack("<f", piece.get(2, bytes(4)))[0]
                for piece in pieces
            ),
            types=tuple(piece.get(3, PieceType.NORMAL) for piece in pieces),
            model_type=trainer.get(3, 1),
            byte_fallback=bool(trainer.get(_BYTE_FALLBACK_FIELD, 0)),
            whitespace_as_suffix=bool(
                trainer.get(_WHITESPACE_AS_SUFFIX_FIELD, 0)
            ),
            unknown_surface=surface.decode("utf-8"),
            charsmap=normalizer.get(2, b""),
            add_dummy_prefix=bool(normalizer.get(3, 1)),
            remove_extra_whitespaces=bool(normalizer.get(4, 1)),
            escape_whitespaces=bool(normalizer.get(5, 1)),
            has_denormalizer=bool(denormalizer.get(2, b"")),
        )


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field of a message."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, place = _varint(message, place)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"Unknown wire type {kind}.")
        if place + size > len(message):
            raise ValueError("The message ends too early.")
        yield tag >> 3, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7


def _not_a_model(model_proto: object) -> ValueError:
    if isinstance(model_proto, (bytes, bytearray)):
        received = f"{len(model_proto)} bytes that are none"
    else:
        received = f"{model_proto!r} of type {type(model_proto).__name__}"
    return ValueError(
        "`model_proto` must be the bytes of a SentencePiece model. "
        f"Received {received}."
    )

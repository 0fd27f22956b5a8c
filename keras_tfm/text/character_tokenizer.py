"""A tokenizer with one id for each character, made of TensorFlow's core ops."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_tfm.text.tokenizer import Tokenizer
from keras_tfm.text.tokenizer import as_dense_ids
from keras_tfm.text.tokenizer import as_string_tensor
from keras_tfm.text.tokenizer import check_texts


class CharacterTokenizer(Tokenizer):
    """Give each character (Unicode code point) its own id.

    For small alphabets such as dates, and wherever a SavedModel must load
    with `import tensorflow` alone: only constants and core ops are used, no
    lookup table. A character that is not in the list becomes `unknown_id`,
    which reads as U+FFFD.

    Args:
        characters: Sequence of distinct characters. The first one gets id 4.

    Raises:
        ValueError: If an entry is not one character, or comes twice.

    Example:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> tokenizer.vocabulary_size
        7
        >>> ids = tokenizer.tokenize(["cab", "a?"])
        >>> ids.to_list()
        [[6, 4, 5], [4, 3]]
        >>> [text.decode() for text in tokenizer.detokenize(ids).numpy()]
        ['cab', 'a�']
    """

    file_name: ClassVar[str] = "characters.json"

    def __init__(self, characters: Sequence[str]) -> None:
        super().__init__(name="character_tokenizer")
        self.characters = _checked_characters(characters)
        codes = np.array([ord(c) for c in self.characters], np.int32)
        order = np.argsort(codes)
        # NumPy arrays become plain constants of each graph that uses them.
        self._sorted_codes = codes[order]
        self._sorted_ids = (order + len(self.special_pieces)).astype(np.int32)
        self._spellings = np.array(
            ["", "", "", "\ufffd", *self.characters], dtype=object
        )

    @classmethod
    def train(cls, texts: Iterable[str]) -> CharacterTokenizer:
        """Make a tokenizer of all characters in `texts`, by code point.

        Args:
            texts: Iterable of strings.

        Returns:
            A `CharacterTokenizer`.

        Raises:
            ValueError: If `texts` is one string or holds no character.

        Example:
            >>> CharacterTokenizer.train(["ba", "cab"]).characters
            ('a', 'b', 'c')
        """
        found: set[str] = set()
        for text in check_texts(texts):
            found.update(text)
        characters = sorted(c for c in found if not _is_surrogate(c))
        if not characters:
            raise ValueError(
                "`texts` holds no character to make a vocabulary of. "
                "Give at least one text that is not empty."
            )
        return cls(characters)

    @property
    def vocabulary_size(self) -> int:
        return len(self._spellings)

    def tokenize(self, texts: Sequence[str] | tf.Tensor) -> tf.RaggedTensor:
        codes = tf.strings.unicode_decode(
            as_string_tensor(texts), "UTF-8", errors="replace"
        )
        sorted_codes = tf.constant(self._sorted_codes)
        place = tf.searchsorted(sorted_codes, codes.flat_values)
        place = tf.minimum(place, len(self.characters) - 1)
        known = tf.gather(sorted_codes, place) == codes.flat_values
        ids = tf.gather(tf.constant(self._sorted_ids), place)
        return codes.with_flat_values(tf.where(known, ids, self.unknown_id))

    def detokenize(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        dense = as_dense_ids(ids, self.vocabulary_size)
        spellings = tf.constant(self._spellings, dtype=tf.string)
        return tf.strings.reduce_join(tf.gather(spellings, dense), axis=-1)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        names = (*self.special_pieces, *self.characters)
        return [
            names[i if 0 <= i < len(names) else self.unknown_id] for i in ids
        ]

    def get_config(self) -> dict[str, Any]:
        return {"characters": list(self.characters)}

    def save(self, folder: str | Path) -> Path:
        content = json.dumps(self.get_config(), ensure_ascii=False)
        return self._write_file(folder, content.encode("utf-8"))

    @classmethod
    def load(cls, folder: str | Path) -> CharacterTokenizer:
        content = cls._read_file(folder)
        try:
            characters = json.loads(content)["characters"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{Path(folder) / cls.file_name} is not a file that "
                "`CharacterTokenizer.save` wrote: expected a JSON object with "
                "the key 'characters'."
            ) from error
        return cls(characters)


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _checked_characters(characters: Sequence[str]) -> tuple[str, ...]:
    characters = tuple(characters)
    if not characters:
        raise ValueError(
            "`characters` must hold at least one character. Received none."
        )
    for character in characters:
        if (
            not isinstance(character, str)
            or len(character) != 1
            or _is_surrogate(character)
        ):
            raise ValueError(
                "`characters` must hold single characters (code points). "
                f"Received: {character!r}."
            )
    if len(set(characters)) < len(characters):
        twice = next(c for c in characters if characters.count(c) > 1)
        raise ValueError(
            f"`characters` must be distinct. Received {twice!r} "
            f"{characters.count(twice)} times."
        )
    return characters

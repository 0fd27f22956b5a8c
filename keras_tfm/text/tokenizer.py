"""What every tokenizer can do: text to ids and back, in and out of graphs."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import tensorflow as tf


class Tokenizer(tf.Module, abc.ABC):
    """Turn text into integer ids and back, eagerly and inside a graph.

    The abstract parent of every tokenizer. Four ids are the same in all of
    them: `pad_id` 0, `start_id` 1, `end_id` 2 and `unknown_id` 3. `tokenize`
    never adds them; the batches and the decoder do.

    A tokenizer is a `tf.Module`, so that one that is an attribute of another
    `tf.Module` is saved with it in a SavedModel.
    """

    pad_id: ClassVar[int] = 0
    start_id: ClassVar[int] = 1
    end_id: ClassVar[int] = 2
    unknown_id: ClassVar[int] = 3
    special_pieces: ClassVar[tuple[str, ...]] = (
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
    )
    file_name: ClassVar[str]

    @property
    @abc.abstractmethod
    def vocabulary_size(self) -> int:
        """Number of ids, the four special ones included."""

    @abc.abstractmethod
    def tokenize(self, texts: Sequence[str] | tf.Tensor) -> tf.RaggedTensor:
        """Cut each text into ids.

        Args:
            texts: List of strings, or string tensor `(batch,)`. Bytes that
                are not UTF-8 become unknown, they are no error.

        Returns:
            Ragged int32 tensor `(batch, None)` without special ids added.

        Raises:
            ValueError: If `texts` is a single string.
        """

    @abc.abstractmethod
    def detokenize(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Join each row of ids to a text.

        Args:
            ids: Integer tensor `(batch, length)`, dense or ragged. Pad, start
                and end ids are left out; an id outside the vocabulary counts
                as unknown.

        Returns:
            String tensor `(batch,)`.
        """

    @abc.abstractmethod
    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the readable piece of each id, special ones included."""

    @abc.abstractmethod
    def save(self, folder: str | Path) -> Path:
        """Write the tokenizer to one file in `folder` and return its path."""

    @classmethod
    @abc.abstractmethod
    def load(cls, folder: str | Path) -> Tokenizer:
        """Read the tokenizer that `save` wrote to `folder`.

        Raises:
            FileNotFoundError: If the folder holds no such file.
        """

    @classmethod
    def _read_file(cls, folder: str | Path) -> bytes:
        path = Path(folder) / cls.file_name
        if not path.is_file():
            raise FileNotFoundError(
                f"No `{cls.file_name}` of a {cls.__name__} in {folder}. "
                "Give the folder that `save` wrote to."
            )
        return path.read_bytes()

    @classmethod
    def _write_file(cls, folder: str | Path, content: bytes) -> Path:
        path = Path(folder) / cls.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def as_string_tensor(texts: Sequence[str] | tf.Tensor) -> tf.Tensor:
    """Turn a list of texts into a string tensor `(batch,)`.

    Args:
        texts: List of `str` or `bytes`, NumPy array of them, or string tensor
            of rank 1.

    Returns:
        String tensor `(batch,)`.

    Raises:
        ValueError: If `texts` is one string, or a tensor of another rank.
        TypeError: If `texts` does not hold strings.
    """
    if isinstance(texts, (str, bytes)):
        raise ValueError(
            "`texts` must be a list of strings or a string tensor of rank 1. "
            f"Received one string: texts={texts!r}. Write [texts]."
        )
    if not tf.is_tensor(texts):
        texts = [_as_bytes(text) for text in texts]
    texts = tf.convert_to_tensor(texts, dtype=tf.string)
    if texts.shape.rank not in (1, None):
        raise ValueError(
            "`texts` must be a list of strings or a string tensor of rank 1. "
            f"Received: a tensor of shape {texts.shape}."
        )
    return texts


def as_dense_ids(
    ids: tf.Tensor | tf.RaggedTensor, vocabulary_size: int
) -> tf.Tensor:
    """Make ids dense int32, with ids outside the vocabulary set to unknown.

    Args:
        ids: Integer tensor `(batch, length)`, dense or ragged, or nested list.
        vocabulary_size: Positive integer. Number of ids there are.

    Returns:
        Int32 tensor `(batch, length)`; ragged rows end in pad ids.

    Raises:
        ValueError: If `ids` is not of rank 2.

    Example:
        >>> as_dense_ids([[4, 99], [-1, 5]], vocabulary_size=6).numpy().tolist()
        [[4, 3], [3, 5]]
    """
    if isinstance(ids, (list, tuple)) and not any(map(tf.is_tensor, ids)):
        ids = tf.ragged.constant(ids, dtype=tf.int64, ragged_rank=1)
    if isinstance(ids, tf.RaggedTensor):
        ids = ids.to_tensor(default_value=Tokenizer.pad_id)
    ids = tf.convert_to_tensor(ids)
    if ids.shape.rank not in (2, None):
        raise ValueError(
            "`ids` must be an integer tensor of rank 2 (batch, length). "
            f"Received: a tensor of shape {ids.shape}."
        )
    # In 64 bits: a cast to 32 bits first could wrap into the vocabulary.
    ids = tf.cast(ids, tf.int64)
    known = (ids >= 0) & (ids < vocabulary_size)
    return tf.cast(tf.where(known, ids, Tokenizer.unknown_id), tf.int32)


def check_texts(texts: Iterable[str]) -> Iterable[str]:
    """Return `texts` unless it is one string, which would iterate by character.

    Raises:
        ValueError: If `texts` is a string.
    """
    if isinstance(texts, (str, bytes)):
        raise ValueError(
            "`texts` must be an iterable of strings, one text each. "
            f"Received one string: texts={texts[:40]!r}. Write [texts]."
        )
    return texts


def _as_bytes(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(
            "`texts` must hold strings. "
            f"Received: {text!r} of type {type(text).__name__}."
        )
    # A lone surrogate is no valid UTF-8: it counts as broken bytes.
    return text.encode("utf-8", "surrogatepass")

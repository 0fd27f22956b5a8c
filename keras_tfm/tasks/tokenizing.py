"""Tokenizers for both sides of a task, and texts as rows of ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from keras_tfm.checks import check_choice
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.tokenizer import Tokenizer

TOKENIZERS = ("bpe", "characters")


def train_tokenizer(
    kind: str, texts: Sequence[str], vocabulary_size: int = 8000
) -> Tokenizer:
    """Train a tokenizer of a kind.

    Args:
        kind: `"bpe"` or `"characters"`.
        texts: The texts to learn from.
        vocabulary_size: Positive integer, of a BPE tokenizer.

    Raises:
        ValueError: If the kind is unknown.
    """
    check_choice("tokenizer", kind, TOKENIZERS)
    if kind == "characters":
        return CharacterTokenizer.train(texts)
    return SentencePieceTokenizer.train(texts, vocabulary_size)


def train_tokenizers(
    pairs: SentencePairs, kind: str, vocabulary_size: int, joint: bool
) -> tuple[Tokenizer, Tokenizer]:
    """Train a tokenizer for the sources and one for the targets.

    Args:
        pairs: The pairs to learn from.
        kind: `"bpe"` or `"characters"`.
        vocabulary_size: Positive integer, of a BPE tokenizer.
        joint: Boolean. Whether one tokenizer, the same object twice, learns
            from both sides.
    """
    if joint:
        texts = [*pairs.sources, *pairs.targets]
        tokenizer = train_tokenizer(kind, texts, vocabulary_size)
        return tokenizer, tokenizer
    return (
        train_tokenizer(kind, pairs.sources, vocabulary_size),
        train_tokenizer(kind, pairs.targets, vocabulary_size),
    )


def token_rows(tokenizer: Tokenizer, texts: Sequence[str]) -> list[np.ndarray]:
    """Cut each text into an array of ids, without special ids."""
    ragged = tokenizer.tokenize(list(texts))
    values, splits = ragged.values.numpy(), ragged.row_splits.numpy()
    return [values[start:stop] for start, stop in pairwise(splits)]


def end_rows(
    rows: Sequence[np.ndarray], end_id: int, empty: bool = False
) -> list[np.ndarray]:
    """Put the end behind every row of ids.

    Args:
        rows: Arrays of ids.
        end_id: Integer.
        empty: Boolean. Whether an empty row gets one too. A row of padding is
            never decoded. Defaults to `False`.

    Example:
        >>> rows = [np.array([7]), np.array([], "int32")]
        >>> [row.tolist() for row in end_rows(rows, 2)]
        [[7, 2], []]
    """
    return [
        np.append(row, end_id).astype("int32") if empty or len(row) else row
        for row in rows
    ]


def pad_rows(
    rows: Sequence[np.ndarray], num_rows: int, length: int, pad_id: int
) -> np.ndarray:
    """Put rows of ids into one array.

    Args:
        rows: Arrays of ids.
        num_rows: Positive integer, at least the number of rows.
        length: Positive integer, at least that of every row.
        pad_id: Integer.

    Returns:
        Int32 array `(num_rows, length)`.

    Example:
        >>> pad_rows([np.array([7, 2]), np.array([])], 2, 3, 0).tolist()
        [[7, 2, 0], [0, 0, 0]]
    """
    ids = np.full((num_rows, length), pad_id, "int32")
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
    return ids


def check_lengths(
    rows: Sequence[np.ndarray], limit: int, name: str = "Text"
) -> None:
    """Raise `ValueError` if a row and its end take more than `limit` tokens.

    Example:
        >>> check_lengths([np.array([7, 8])], limit=3)
    """
    for index, row in enumerate(rows):
        if len(row) + 1 > limit:
            raise ValueError(
                f"{name} {index + 1} takes {len(row) + 1} tokens with its end, "
                f"and the model was made for at most {limit}. Shorten or split "
                "it."
            )


def check_vocabularies(
    model_arguments: dict[str, Any], source: Tokenizer, target: Tokenizer
) -> None:
    """Raise `ValueError` unless a model fits the tokenizers of both sides.

    Args:
        model_arguments: What the model was made with.
        source: Tokenizer of the sources.
        target: Tokenizer of the targets.
    """
    for side, tokenizer in (("source", source), ("target", target)):
        size = model_arguments[f"{side}_vocabulary_size"]
        if tokenizer.vocabulary_size != size:
            raise ValueError(
                f"The {side} tokenizer has {tokenizer.vocabulary_size} ids, "
                f"the model {size}. Make the model with "
                f"{side}_vocabulary_size={tokenizer.vocabulary_size}."
            )
    if model_arguments["tie_embeddings"] == "all" and source is not target:
        # Also where the sizes agree: the same id means something else.
        raise ValueError(
            '`tie_embeddings="all"` needs one vocabulary for source and '
            "target. Received: two tokenizers. Train a joint one, or use "
            '`tie_embeddings="decoder"`.'
        )

"""Load whichever tokenizer a folder holds."""

from __future__ import annotations

from pathlib import Path

from keras_tfm.text.byte_pair_tokenizer import BytePairTokenizer
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.tokenizer import Tokenizer

_KINDS: tuple[type[Tokenizer], ...] = (
    CharacterTokenizer,
    SentencePieceTokenizer,
    BytePairTokenizer,
)


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Load the tokenizer that its `save` wrote to `folder`, of any kind.

    Args:
        folder: Path of the folder that was given to `save`.

    Returns:
        A tokenizer of the kind whose file the folder holds.

    Raises:
        FileNotFoundError: If the folder holds no tokenizer's file.
        ValueError: If it holds the files of two kinds.
    """
    folder = Path(folder)
    found = [kind for kind in _KINDS if (folder / kind.file_name).is_file()]
    if not found:
        names = " or ".join(f"`{kind.file_name}`" for kind in _KINDS)
        raise FileNotFoundError(
            f"No tokenizer in {folder}: expected a file {names}. "
            "Give the folder that a tokenizer's `save` wrote to."
        )
    if len(found) > 1:
        names = " and ".join(f"`{kind.file_name}`" for kind in found)
        raise ValueError(
            f"Two tokenizers in {folder}: {names}. Remove one of them."
        )
    return found[0].load(folder)

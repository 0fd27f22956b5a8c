"""What every attention head looks at while a text is translated."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from keras_tfm.tasks.tokenizing import check_lengths
from keras_tfm.tasks.tokenizing import token_rows

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator


def attention_record(
    translator: Translator, text: str, translation: str | None = None
) -> dict[str, Any]:
    """Return tokens and attention weights, see `Translator.attention`."""
    if translation is None:
        translation = translator.translate([text])[0]
    source = translator.source_tokenizer
    target = translator.target_tokenizer
    source_rows = token_rows(source, [text])
    check_lengths(source_rows, translator.source_lengths[-1])
    source_row = [*source_rows[0], source.end_id]
    target_row = [*token_rows(target, [translation])[0], target.end_id]
    scores = translator.model.attention_scores(
        np.array([source_row], "int32"),
        np.array([[target.start_id, *target_row[:-1]]], "int32"),
    )
    arrays = {
        name: np.stack([np.asarray(layer)[0] for layer in layers])
        for name, layers in scores.items()
    }
    return {
        "source_tokens": source.pieces(source_row),
        "target_tokens": target.pieces(target_row),
        **arrays,
    }

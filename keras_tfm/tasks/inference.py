"""Texts to translations, scores and vectors, by compiled functions of ids."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from keras_tfm.generation.generator import Generator
from keras_tfm.tasks.batched_calls import call_in_batches
from keras_tfm.tasks.batched_calls import compile_function
from keras_tfm.tasks.hypothesis import Hypothesis
from keras_tfm.tasks.hypothesis import is_hypothesis
from keras_tfm.tasks.serving import id_function
from keras_tfm.tasks.tokenizing import check_lengths
from keras_tfm.tasks.tokenizing import end_rows
from keras_tfm.tasks.tokenizing import token_rows

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator


class Inference:
    """What a translator does with texts; the methods are described there.

    A function is compiled when it is first needed and kept.

    Args:
        translator: `Translator`.
    """

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def translate(
        self, texts: Sequence[str], generator: Generator | None
    ) -> list[str]:
        """See `Translator.translate`."""
        sources = self._source_rows("translate", texts)
        found = self._call("translate", [sources], generator)
        return self._texts([ids for ids, _ in found])

    def translate_nbest(
        self, texts: Sequence[str], generator: Generator | None
    ) -> list[list[Hypothesis]]:
        """See `Translator.translate_nbest`."""
        sources = self._source_rows("translate_nbest", texts)
        found = self._call("translate_nbest", [sources], generator)
        return [
            [
                Hypothesis(text, float(score))
                for text, score in zip(self._texts(ids), scores, strict=True)
                if is_hypothesis(score)
            ]
            for ids, scores in found
        ]

    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> np.ndarray:
        """See `Translator.score`."""
        for texts in (sources, targets):
            _check_list("score", texts)
        if len(sources) != len(targets):
            raise ValueError(
                "`score` takes one target for each source. Received: "
                f"{len(sources)} sources and {len(targets)} targets."
            )
        tokenizer = self.translator.target_tokenizer
        rows = token_rows(tokenizer, targets) if len(targets) else []
        check_lengths(rows, self.translator.source_lengths[-1], "Target")
        rows = end_rows(rows, tokenizer.end_id, empty=True)
        columns = [self._source_rows("score", sources), rows]
        found = self._call("score", columns)
        return np.array([score for (score,) in found], "float32")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """See `Translator.encode`."""
        found = self._call("encode", [self._source_rows("encode", texts)])
        size = self.translator.model.arguments["hidden_dim"]
        vectors = [vector for (vector,) in found]
        return np.array(vectors, "float32").reshape(-1, size)

    def _source_rows(self, name: str, texts: Sequence[str]) -> list[np.ndarray]:
        _check_list(name, texts)
        tokenizer = self.translator.source_tokenizer
        rows = token_rows(tokenizer, texts) if len(texts) else []
        check_lengths(rows, self.translator.source_lengths[-1])
        return end_rows(rows, tokenizer.end_id)

    def _call(
        self,
        name: str,
        columns: list[list[np.ndarray]],
        generator: Generator | None = None,
    ) -> list[tuple[np.ndarray, ...]]:
        translator = self.translator
        key = name, generator or translator.generator
        if key not in self._compiled:
            function = id_function(translator, name, generator)
            self._compiled[key] = compile_function(
                translator.model, function, len(columns)
            )
        found: dict[int, tuple[np.ndarray, ...]] = {}
        for places, results in call_in_batches(
            self._compiled[key],
            columns,
            translator.batch_sizes,
            translator.source_lengths,
            translator.source_tokenizer.pad_id,
        ):
            found.update(zip(places, zip(*results, strict=True), strict=True))
        return [found[place] for place in range(len(found))]

    def _texts(self, rows: Sequence[np.ndarray]) -> list[str]:
        if not len(rows):
            return []
        texts = self.translator.target_tokenizer.detokenize(np.stack(rows))
        return [text.decode("utf-8", "replace") for text in texts.numpy()]


def _check_list(name: str, texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise ValueError(
            f"`{name}` takes a list of texts. Received one string: "
            f"pass [{texts[:20]!r}]."
        )

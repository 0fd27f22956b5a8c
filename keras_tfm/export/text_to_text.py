"""Strings in, strings out: tokenizers and a compiled decoder in one module.

Strings and ragged rows cannot be compiled by XLA. So the outer functions cut
and pad, the inner ones, from ids to ids, are compiled, and all are saved.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_tfm.export.buckets import Buckets
from keras_tfm.text.tokenizer import Tokenizer

# What can be done with ids: the name of a signature, and how many columns of
# ids it takes.
SIGNATURES = {"translate": 1, "translate_nbest": 1, "score": 2, "encode": 1}


class TextToText(tf.Module):
    """Turn a batch of texts of any size into texts, scores or vectors.

    The rows are cut into chunks of at most the largest batch size; rows and
    lengths of a chunk are padded to the next size of a short list, so that XLA
    compiles at most `len(batch_sizes) * len(lengths)` programs for each
    function. A text longer than the largest length is cut there; an empty text
    gives an empty one, of score 0.

    The functions of strings, each an attribute and a signature, return
    dictionaries:

    - `translate(text)`: `text (batch,)` and `score (batch,)`;
    - `translate_nbest(text)`: `text` and `score`, `(batch, hypotheses)`, the
      best first;
    - `score(source, target)`: `score (batch,)`, the log-probability of each
      target, and `tokens (batch,)`, how many it has with its end;
    - `encode(text)`: `vector (batch, size)`;
    - `warmup()`: compiles every program, by running each once on padding, and
      returns how many there are, `programs`.

    Args:
        source_tokenizer: Tokenizer of the texts that come in.
        target_tokenizer: Tokenizer of the texts that go out.
        functions: Dictionary of functions of int32 ids `(batch, length)`,
            padded with `pad_id`, a row its tokens and `end_id`. They must be
            made of TensorFlow operations. `translate` returns ids `(batch,
            target_length)` and float32 scores `(batch,)`; `translate_nbest` ids
            `(batch, hypotheses, target_length)` and scores `(batch,
            hypotheses)`; `score`, of source and target ids, scores `(batch,)`;
            `encode` vectors `(batch, size)`. Those that are missing have no
            signature.
        variables: The `tf.Variable`s that the functions read. They are saved,
            the objects around them are not.
        lengths: Increasing positive integers, in tokens with the end.
        batch_sizes: Increasing positive integers, in rows.
        jit_compile: Boolean. Whether XLA compiles the functions.
            Defaults to `True`.
    """

    def __init__(
        self,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        functions: dict[str, Callable[..., Any]],
        variables: Sequence[tf.Variable],
        lengths: Sequence[int],
        batch_sizes: Sequence[int] = (1, 8, 64),
        jit_compile: bool = True,
    ) -> None:
        super().__init__(name="text_to_text")
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        # The variables alone: a Keras model as an attribute makes a SavedModel
        # that the loaders of servers cannot read.
        self.saved_variables = list(variables)
        self.buckets = Buckets(
            tuple(sorted(lengths)),
            tuple(sorted(batch_sizes)),
            source_tokenizer.pad_id,
        )
        # Public, so that whoever has ids already can call them, also after
        # loading.
        self.id_functions = {
            name: tf.function(
                function,
                input_signature=[
                    tf.TensorSpec((None, None), tf.int32, f"ids_{place}")
                    for place in range(SIGNATURES[name])
                ],
                jit_compile=jit_compile,
                autograph=False,
            )
            for name, function in functions.items()
        }
        texts = tf.TensorSpec((None,), tf.string, "text")
        pair = [
            tf.TensorSpec((None,), tf.string, n) for n in ("source", "target")
        ]
        methods = {
            "translate": (self._translate, [texts]),
            "translate_nbest": (self._translate_nbest, [texts]),
            "score": (self._score, pair),
            "encode": (self._encode, [texts]),
        }
        for name in functions:
            method, arguments = methods[name]
            function = tf.function(
                method, input_signature=arguments, autograph=False
            )
            setattr(self, name, function)
        self.warmup = tf.function(
            self._warmup, input_signature=[], autograph=False
        )

    def signatures(self) -> dict[str, Any]:
        """Return the functions of strings to save, by the name to call them.

        `serving_default` is `translate`; `warmup` compiles every program.
        """
        found = {name: getattr(self, name) for name in self.id_functions}
        if "translate" in found:
            found["serving_default"] = found["translate"]
        return {**found, "warmup": self.warmup}

    def _translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        ids, scores = self._run("translate", self._source_rows(text))
        return {
            "text": self.target_tokenizer.detokenize(ids),
            "score": scores,
        }

    def _translate_nbest(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        ids, scores = self._run("translate_nbest", self._source_rows(text))
        flat = tf.reshape(ids, (-1, ids.shape[2]))
        texts = self.target_tokenizer.detokenize(flat)
        return {"text": tf.reshape(texts, tf.shape(scores)), "score": scores}

    def _score(
        self, source: tf.Tensor, target: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        check = tf.debugging.assert_equal(
            tf.shape(source),
            tf.shape(target),
            "`source` and `target` must hold as many texts.",
        )
        with tf.control_dependencies([check]):
            source = tf.identity(source)
        targets = self._rows(self.target_tokenizer, target)
        (scores,) = self._run("score", self._source_rows(source), targets)
        tokens = tf.cast(targets.row_lengths(), tf.int32)
        return {"score": scores, "tokens": tokens}

    def _encode(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        (vectors,) = self._run("encode", self._source_rows(text))
        return {"vector": vectors}

    def _warmup(self) -> dict[str, tf.Tensor]:
        runs = []
        for name, function in self.id_functions.items():
            for shape in self.buckets.shapes():
                padding = tf.fill(shape, self.buckets.pad_id)
                results = function(*[padding] * SIGNATURES[name])
                runs.extend(tf.nest.flatten(results))
        count = len(self.id_functions) * len(list(self.buckets.shapes()))
        with tf.control_dependencies(runs):
            return {"programs": tf.constant(count)}

    def _source_rows(self, text: tf.Tensor) -> tf.RaggedTensor:
        rows = self._rows(self.source_tokenizer, text)
        # An empty text stays a row of padding, which is never decoded.
        empty = tf.equal(rows.row_lengths(), 1)
        kept = tf.where(empty, tf.zeros_like(rows.row_lengths()), 2**31)
        return _first(rows, kept)

    def _rows(self, tokenizer: Tokenizer, text: tf.Tensor) -> tf.RaggedTensor:
        longest = self.buckets.lengths[-1]
        tokens = tokenizer.tokenize(text)[:, : longest - 1]
        ends = tf.fill((tf.shape(text)[0], 1), tokenizer.end_id)
        return tf.concat([tokens, tf.cast(ends, tokens.dtype)], axis=1)

    def _run(
        self, name: str, *columns: tf.RaggedTensor
    ) -> tuple[tf.Tensor, ...]:
        function = self.id_functions[name]
        outputs = _as_tuple(function.get_concrete_function().structured_outputs)
        return self.buckets.run(
            lambda *ids: _as_tuple(function(*ids)),
            columns,
            [tf.TensorShape((None, *output.shape[1:])) for output in outputs],
            [output.dtype for output in outputs],
        )


def _first(rows: tf.RaggedTensor, counts: tf.Tensor) -> tf.RaggedTensor:
    places = tf.ragged.range(rows.row_lengths())
    return tf.ragged.boolean_mask(
        rows, places < tf.cast(counts[:, tf.newaxis], places.dtype)
    )


def _as_tuple(results: Any) -> tuple[tf.Tensor, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)

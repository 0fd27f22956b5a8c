"""Strings in, strings out: tokenizers and a compiled decoder in one module.

Strings and ragged rows cannot be compiled by XLA. So the outer function cuts
and pads, the inner one, from ids to ids, is compiled, and both are saved.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence

import tensorflow as tf

from keras_tfm.text.tokenizer import Tokenizer


class TextToText(tf.Module):
    """Turn a batch of texts of any size into texts and scores.

    The rows are cut into chunks of at most the largest batch size; rows and
    lengths of a chunk are padded to the next size of a short list, so that XLA
    compiles at most `len(batch_sizes) * len(source_lengths)` programs. A text
    longer than the largest length is cut there; an empty text gives an empty
    one.

    Args:
        source_tokenizer: Tokenizer of the texts that come in.
        target_tokenizer: Tokenizer of the texts that go out.
        write: Function of int32 ids `(batch, length)`, padded with `pad_id`, a
            row its tokens and `end_id`. Returns int32 ids `(batch,
            target_length)` and float32 scores `(batch,)`. It must be made of
            TensorFlow operations.
        variables: The `tf.Variable`s that `write` reads. They are saved, the
            objects around them are not.
        target_length: Positive integer, the length of what `write` returns.
        source_lengths: Increasing positive integers, in tokens with the end.
        batch_sizes: Increasing positive integers, in rows.
        jit_compile: Boolean. Whether XLA compiles `write`. Defaults to `True`.
    """

    def __init__(
        self,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        write: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
        variables: Sequence[tf.Variable],
        target_length: int,
        source_lengths: Sequence[int],
        batch_sizes: Sequence[int] = (1, 8, 64),
        jit_compile: bool = True,
    ) -> None:
        super().__init__(name="text_to_text")
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        # The variables alone: a Keras model as an attribute makes a SavedModel
        # that the loaders of servers cannot read.
        self.saved_variables = list(variables)
        self.target_length = target_length
        self.source_lengths = tuple(sorted(source_lengths))
        self.batch_sizes = tuple(sorted(batch_sizes))
        self.write_ids = tf.function(
            write,
            input_signature=[tf.TensorSpec((None, None), tf.int32, "ids")],
            jit_compile=jit_compile,
            autograph=False,
        )

    @tf.function(
        input_signature=[tf.TensorSpec((None,), tf.string, "text")],
        autograph=False,
    )
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translate texts `(batch,)`; the batch may be empty."""
        most = self.batch_sizes[-1]
        count = tf.shape(text)[0]

        def write_chunk(start, ids, scores):
            chunk_ids, chunk_scores = self._write_chunk(
                text[start : start + most]
            )
            return (
                start + most,
                tf.concat([ids, chunk_ids], 0),
                tf.concat([scores, chunk_scores], 0),
            )

        _, ids, scores = tf.while_loop(
            lambda start, *_: start < count,
            write_chunk,
            (
                tf.constant(0),
                tf.zeros((0, self.target_length), tf.int32),
                tf.zeros((0,), tf.float32),
            ),
            shape_invariants=(
                tf.TensorShape(()),
                tf.TensorShape((None, self.target_length)),
                tf.TensorShape((None,)),
            ),
        )
        return {
            "text": self.target_tokenizer.detokenize(ids),
            "score": scores,
        }

    def _write_chunk(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        longest = self.source_lengths[-1]
        tokens = self.source_tokenizer.tokenize(text)[:, : longest - 1]
        # An empty text stays a row of padding, which is never decoded.
        ends = tf.ragged.boolean_mask(
            tf.fill((tf.shape(text)[0], 1), self.source_tokenizer.end_id),
            tf.expand_dims(tokens.row_lengths() > 0, 1),
        )
        rows = tf.concat([tokens, tf.cast(ends, tokens.dtype)], axis=1)
        count = tf.shape(text)[0]
        length = tf.reduce_max(
            tf.concat([[1], tf.cast(rows.row_lengths(), tf.int32)], 0)
        )
        ids = rows.to_tensor(self.source_tokenizer.pad_id)
        ids = tf.pad(
            ids,
            [
                [0, _next_size(count, self.batch_sizes) - count],
                [0, _next_size(length, self.source_lengths) - tf.shape(ids)[1]],
            ],
            constant_values=self.source_tokenizer.pad_id,
        )
        written, scores = self.write_ids(tf.cast(ids, tf.int32))
        return written[:count], scores[:count]


def _next_size(size: tf.Tensor, sizes: Sequence[int]) -> tf.Tensor:
    allowed = tf.constant(sizes)
    return tf.reduce_min(tf.where(allowed >= size, allowed, sizes[-1]))

"""A model as functions from ids to ids, scores or vectors.

They are made of backend operations and not compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_tfm.generation.generator import Generator
from keras_tfm.ops.row_noise import row_seeds
from keras_tfm.ops.sequences import shift_right

# Rows that have ended give up their place where there is so much to write: two
# more loops are compiled for that.
_WORTH_DROPPING = 32


def make_writer(
    model: keras.Model,
    generator: Generator,
    pad_id: int = 0,
    max_length_factor: float | None = None,
    n_best: bool = False,
    drop_rows: bool = True,
) -> Callable[[Any], tuple[Any, Any]]:
    """Join a model's `initial_cache` and `step` with a generator.

    Args:
        model: Model with `initial_cache` and `step`, such as `Transformer`.
        generator: What chooses the tokens.
        pad_id: Integer. Rows of nothing else are not decoded.
        max_length_factor: Positive float: a row has at most this many times
            the tokens of its source, both with their end. Defaults to `None`,
            only the generator's own limit.
        n_best: Boolean. Whether to return every hypothesis, not the best.
            Defaults to `False`.
        drop_rows: Boolean. Whether rows that have ended give up their place;
            not every format can carry that. Defaults to `True`.

    Returns:
        Function of int32 source ids `(batch, length)` that returns int32 ids
        `(batch, target_length)` and float32 scores `(batch,)`; with
        `n_best=True` `(batch, hypotheses, target_length)` and `(batch,
        hypotheses)`.
    """

    def write(source_ids: Any) -> tuple[Any, Any]:
        beams = generator.num_beams
        cache = model.initial_cache(
            source_ids, generator.cache_lengths[0], beams
        )
        real = ops.not_equal(source_ids, pad_id)
        arguments = {
            "grow_cache": lambda cache, length: model.grow_cache(
                cache, length, beams
            ),
        }
        if drop_rows and generator.max_length >= _WORTH_DROPPING:
            arguments["take_rows"] = model.take_rows
        if max_length_factor is not None:
            length = ops.sum(ops.cast(real, "float32"), axis=1)
            arguments["max_lengths"] = ops.ceil(max_length_factor * length)
        if generator.reads_seeds:
            # What is drawn for a text depends on the text, not on its batch.
            arguments["seeds"] = row_seeds(source_ids, real)
        if generator.reads_attention:
            arguments["source_mask"] = real
        run = generator.n_best if n_best else generator
        return run(model.step, cache, ops.any(real, axis=1), **arguments)

    return write


def make_scorer(
    model: keras.Model, start_id: int = 1, pad_id: int = 0
) -> Callable[[Any, Any], Any]:
    """Make a function that scores given targets.

    Args:
        model: Model of `source_ids` and `target_ids` that returns logits.
        start_id: Integer, the id the decoder reads first.
        pad_id: Integer. A row whose source is nothing else scores 0.

    Returns:
        Function of int32 source and target ids `(batch, length)`, the targets
        with their end. It returns the float32 sum of the log-probabilities of
        the target's tokens, `(batch,)`.
    """

    def score(source_ids: Any, target_ids: Any) -> Any:
        vectors = model.target_vectors(
            source_ids, shift_right(target_ids, start_id)
        )

        def log_probability(position):
            # One position at a time: the logits of all would fill the memory.
            vector, target = position
            logits = ops.cast(model.logits(vector), "float32")
            own = ops.take_along_axis(logits, target[:, None], axis=-1)
            return own[:, 0] - ops.logsumexp(logits, axis=-1)

        found = ops.map(
            log_probability,
            (
                ops.transpose(vectors, (1, 0, 2)),
                ops.transpose(target_ids),
            ),
        )
        real = ops.not_equal(target_ids, pad_id)
        total = ops.sum(ops.where(real, ops.transpose(found), 0.0), axis=1)
        written = ops.any(ops.not_equal(source_ids, pad_id), axis=1)
        return ops.where(written, total, 0.0)

    return score


def make_encoder(model: keras.Model, pad_id: int = 0) -> Callable[[Any], Any]:
    """Make a function that turns a source into one vector.

    Args:
        model: Model with `encode`.
        pad_id: Integer.

    Returns:
        Function of int32 source ids `(batch, length)` that returns the float32
        mean of the encoder's vectors over a row's tokens, its end included,
        `(batch, hidden_dim)`; zeros for a row of padding.
    """

    def encode(source_ids: Any) -> Any:
        vectors = ops.cast(model.encode(source_ids), "float32")
        real = ops.not_equal(source_ids, pad_id)
        mask = ops.expand_dims(ops.cast(real, "float32"), -1)
        count = ops.maximum(ops.sum(mask, axis=1), 1.0)
        return ops.sum(vectors * mask, axis=1) / count

    return encode

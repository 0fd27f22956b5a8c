"""A model and a generator as one compiled function from ids to ids."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_tfm.generation.generator import Generator
from keras_tfm.tasks.tokenizing import pad_rows


def make_writer(
    model: keras.Model, generator: Generator, pad_id: int = 0
) -> Callable[[Any], tuple[Any, Any]]:
    """Join a model's `initial_cache` and `step` with a generator.

    Args:
        model: Model with `initial_cache` and `step`, such as `Transformer`.
        generator: What chooses the tokens.
        pad_id: Integer. Rows of nothing else are not decoded.

    Returns:
        Function of int32 source ids `(batch, length)` that returns int32 ids
        `(batch, target_length)` and float32 scores `(batch,)`. It is made of
        backend operations and not compiled.
    """

    def write(source_ids: Any) -> tuple[Any, Any]:
        cache = model.initial_cache(source_ids, generator.max_length)
        active = ops.any(ops.not_equal(source_ids, pad_id), axis=1)
        return generator(model.step, cache, active)

    return write


def compile_writer(
    model: keras.Model, write: Callable[[Any], tuple[Any, Any]]
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Compile a writer for JAX, with the weights as they are at each call.

    Args:
        model: The model that `write` reads.
        write: What `make_writer` returned.

    Returns:
        Function of NumPy arrays.
    """
    import jax

    @jax.jit
    def run(values: list[Any], source_ids: Any) -> tuple[Any, Any]:
        mapping = zip(model.variables, values, strict=True)
        with keras.StatelessScope(state_mapping=list(mapping)):
            return write(source_ids)

    def call(source_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = [variable.value for variable in model.variables]
        ids, scores = run(values, source_ids)
        return np.asarray(ids), np.asarray(scores)

    return call


def write_in_batches(
    write: Callable[[np.ndarray], tuple[Any, Any]],
    rows: Sequence[np.ndarray],
    batch_sizes: Sequence[int],
    source_lengths: Sequence[int],
    end_id: int,
    pad_id: int,
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Decode any number of rows in batches of a few shapes.

    Rows of like length go together, which saves padding and changes nothing in
    the results.

    Args:
        write: Function of ids `(batch, length)`, see `make_writer`.
        rows: Arrays of source ids without their end.
        batch_sizes: Increasing positive integers, the sizes to pad to.
        source_lengths: Increasing positive integers, the lengths to pad to; the
            last is longer than every row.
        end_id: Integer.
        pad_id: Integer.

    Yields:
        The places of the rows of a batch, and their target ids.
    """
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    most = batch_sizes[-1]
    for start in range(0, len(order), most):
        chunk = order[start : start + most]
        longest = len(rows[chunk[-1]]) + 1
        ids = pad_rows(
            [rows[index] for index in chunk],
            next(size for size in batch_sizes if size >= len(chunk)),
            next(length for length in source_lengths if length >= longest),
            end_id,
            pad_id,
        )
        written, _ = write(ids)
        yield chunk, np.asarray(written)[: len(chunk)]

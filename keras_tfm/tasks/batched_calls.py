"""Compiled functions of ids, called with any number of rows."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_tfm.tasks.tokenizing import pad_rows


def compile_function(
    model: keras.Model, function: Callable[..., Any], num_columns: int = 1
) -> Callable[..., tuple[np.ndarray, ...]]:
    """Compile a function of ids by XLA, with the weights of each call.

    Args:
        model: The model that the function reads.
        function: Function of int32 tensors `(batch, length)`, made of backend
            operations. Returns a tensor or a tuple of tensors.
        num_columns: Positive integer, the tensors it takes. Defaults to `1`.

    Returns:
        Function of NumPy arrays that returns a tuple of NumPy arrays.
    """
    if keras.backend.backend() == "jax":
        run = _compiled_by_jax(model, function)
    else:
        import tensorflow as tf

        # Traced once for every shape, compiled once for each.
        run = tf.function(
            function,
            input_signature=[tf.TensorSpec((None, None), tf.int32)]
            * num_columns,
            jit_compile=True,
            autograph=False,
        )

    def call(*ids: np.ndarray) -> tuple[np.ndarray, ...]:
        results = run(*(keras.ops.convert_to_tensor(array) for array in ids))
        if not isinstance(results, (tuple, list)):
            results = (results,)
        return tuple(np.asarray(result) for result in results)

    return call


def _compiled_by_jax(
    model: keras.Model, function: Callable[..., Any]
) -> Callable[..., Any]:
    import jax

    @jax.jit
    def run(values: list[Any], *ids: Any) -> Any:
        mapping = zip(model.variables, values, strict=True)
        with keras.StatelessScope(state_mapping=list(mapping)):
            return function(*ids)

    return lambda *ids: run(
        [variable.value for variable in model.variables], *ids
    )


def call_in_batches(
    function: Callable[..., tuple[np.ndarray, ...]],
    columns: Sequence[Sequence[np.ndarray]],
    batch_sizes: Sequence[int],
    lengths: Sequence[int],
    pad_id: int,
) -> Iterator[tuple[list[int], tuple[np.ndarray, ...]]]:
    """Call a function on any number of rows, in batches of a few shapes.

    Rows of like length go together, which saves padding and changes nothing in
    the results.

    Args:
        function: Function of ids `(batch, length)`, one for each column.
        columns: For each argument, the rows of ids; as many in each.
        batch_sizes: Increasing positive integers, the sizes to pad to.
        lengths: Increasing positive integers, the lengths to pad to; the last
            is at least that of every row.
        pad_id: Integer.

    Yields:
        The places of the rows of a batch, and what the function returned for
        them.
    """
    longest = [max(map(len, rows)) for rows in zip(*columns, strict=True)]
    order = sorted(range(len(longest)), key=longest.__getitem__)
    most = batch_sizes[-1]
    for start in range(0, len(order), most):
        chunk = order[start : start + most]
        size = next(size for size in batch_sizes if size >= len(chunk))
        length = next(n for n in lengths if n >= longest[chunk[-1]])
        arrays = [
            pad_rows([column[place] for place in chunk], size, length, pad_id)
            for column in columns
        ]
        yield chunk, tuple(array[: len(chunk)] for array in function(*arrays))

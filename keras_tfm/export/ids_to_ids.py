"""What every file of a decoder shares: its graph, its names and its check.

Shape letters: B batch, S source length.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_tfm.checks import check_positive_int

# What a file calls its input and its outputs.
INPUT_NAME = "ids"
OUTPUT_NAMES = ("target_ids", "scores")

# Far above what rounding does in 32 bits, far below what a wrong operation
# does.
_TOLERANCE = 1e-2

_WAY_OUT = "Or export a SavedModel."


def trace_writer(
    write: Callable[[Any], tuple[Any, Any]],
    batch_size: int | None = None,
    source_length: int | None = None,
) -> tf.types.experimental.PolymorphicFunction:
    """Make a TensorFlow function with named inputs and outputs.

    Args:
        write: Function of int32 ids `(B, S)`, padded with 0, that returns
            int32 ids and float32 scores, made of TensorFlow operations.
        batch_size: Positive integer, the only B that it will take. Defaults to
            `None`: any.
        source_length: Positive integer, the only S that it will take. Defaults
            to `None`: any.

    Returns:
        Function of `ids` that returns a dictionary of `target_ids` and
        `scores`.

    Raises:
        RuntimeError: If Keras does not run on TensorFlow.
        ValueError: If a size is not positive.
    """
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "This export starts from a graph of TensorFlow. Keras runs on "
            f"{backend}: save the model and export it in a process with "
            "KERAS_BACKEND=tensorflow."
        )
    shape = [
        None if size is None else check_positive_int(name, size)
        for name, size in (
            ("batch_size", batch_size),
            ("source_length", source_length),
        )
    ]

    def named(ids):
        return dict(zip(OUTPUT_NAMES, write(ids), strict=True))

    return tf.function(
        named,
        input_signature=[tf.TensorSpec(shape, tf.int32, INPUT_NAME)],
        autograph=False,
    )


def check_new_file(path: str | Path) -> Path:
    """Return a path at which nothing is yet.

    Raises:
        ValueError: If something is there.
    """
    path = Path(path)
    if path.exists():
        raise ValueError(
            f"{path} is there already. Give another path, or remove it."
        )
    return path


def refuse(format_name: str, reason: str) -> ValueError:
    """Return the error that says why a format cannot carry a decoder."""
    return ValueError(f"{format_name} cannot carry this: {reason} {_WAY_OUT}")


def refuse_operations(format_name: str, operations: set[str]) -> ValueError:
    """Return the error that names the operations which a format lacks.

    Example:
        >>> print(refuse_operations("ONNX", {"Qr", "Bincount"}))
        ONNX cannot carry this: it has no Bincount, Qr. Leave out the part of \
the model or the decoder that needs it. Or export a SavedModel.
    """
    names = ", ".join(sorted(operations))
    return refuse(
        format_name,
        f"it has no {names}. Leave out the part of the model or the decoder "
        "that needs it.",
    )


def check_dtypes(
    format_name: str,
    traced: tf.types.experimental.PolymorphicFunction,
    lacking: Sequence[str],
) -> None:
    """Raise an error if a decoder computes in a dtype that a format lacks.

    Args:
        format_name: String, for the message.
        traced: What `trace_writer` returned.
        lacking: Names of dtypes.

    Raises:
        ValueError: If one of them occurs.
    """
    graph = traced.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node]
    for function in graph.library.function:
        nodes += function.node_def
    dtypes = {
        tf.as_dtype(value.type).name
        for node in nodes
        for value in node.attr.values()
        if value.type
    }
    for dtype in lacking:
        if dtype in dtypes:
            remedy = (
                "Make the model with dtype='float32' and load its weights."
                if "float" in dtype
                else "Export the model as it was before its quantization."
            )
            reason = f"it has no {dtype}, and the model has. {remedy}"
            raise refuse(format_name, reason)


def check_results(
    format_name: str,
    traced: tf.types.experimental.PolymorphicFunction,
    run: Callable[[np.ndarray], dict[str, np.ndarray]],
) -> None:
    """Raise an error unless a converted decoder scores like the original.

    A converter may succeed and its file compute something else, or nothing.

    Args:
        format_name: String, for the message.
        traced: What `trace_writer` returned.
        run: The converted function, of the ids as a NumPy array.

    Raises:
        ValueError: If the converted function fails, or its scores differ.
    """
    ids = _example(traced)
    expected = traced(tf.constant(ids))["scores"].numpy()
    try:
        found = run(ids)["scores"]
    except Exception as error:
        reason = f"the converted file does not run ({_first_line(error)})."
        raise refuse(format_name, reason) from error
    if not np.allclose(found, expected, _TOLERANCE, _TOLERANCE):
        raise refuse(
            format_name,
            "the converted file computes something else, a score of "
            f"{np.ravel(found)[0]:.3f} and not {np.ravel(expected)[0]:.3f}. "
            "Leave out what may count beyond 32 bits, such as sampling.",
        )


def _example(traced: Any) -> np.ndarray:
    # Rows of different lengths, of ids that every vocabulary has.
    [spec] = traced.input_signature
    count, length = spec.shape[0] or 2, spec.shape[1] or 3
    ids = np.zeros((count, length), "int32")
    for row, values in enumerate(ids):
        values[: length - row % length] = 3
    return ids


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200].rstrip(".")

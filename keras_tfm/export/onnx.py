"""A decoder from ids to ids as an ONNX file, for runtimes in any language."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_tfm.export.ids_to_ids import INPUT_NAME
from keras_tfm.export.ids_to_ids import OUTPUT_NAMES
from keras_tfm.export.ids_to_ids import check_dtypes
from keras_tfm.export.ids_to_ids import check_new_file
from keras_tfm.export.ids_to_ids import check_results
from keras_tfm.export.ids_to_ids import refuse_operations
from keras_tfm.export.ids_to_ids import trace_writer

_FORMAT = "ONNX"

# The newest version of the operations that the converter knows.
_OPSET = 18


def write_onnx(
    write: Callable[[Any], tuple[Any, Any]],
    path: str | Path,
    batch_size: int | None = None,
    source_length: int | None = None,
) -> None:
    """Write a decoder, with its weights and its whole loop, as an `.onnx`.

    The file needs the standard operations of ONNX, version 18, and no others.
    Text stays outside: it is the caller who turns it into ids and back. The
    file maps `ids`, int32 `(batch, source_length)`, to `target_ids`, int32
    `(batch, target_length)`, and `scores`, float32 `(batch,)`. Unless sizes are
    given here, any batch and any length will do:

    ```python
    import onnxruntime

    session = onnxruntime.InferenceSession("translator.onnx")
    target_ids, scores = session.run(["target_ids", "scores"], {"ids": ids})
    ```

    The file is run once before it is written, and must score as `write` does.

    Args:
        write: Function of int32 ids `(batch, length)`, padded with 0, that
            returns int32 ids `(batch, target_length)` and float32 scores
            `(batch,)`. It must be made of TensorFlow operations.
        path: Path of the file, such as `translator.onnx`. Nothing may be there.
        batch_size: Positive integer, the only one that the file will take.
            Defaults to `None`: any.
        source_length: Positive integer, the only one that the file will take.
            Defaults to `None`: any.

    Raises:
        ImportError: If `tf2onnx`, `onnx` or `onnxruntime` is missing.
        RuntimeError: If Keras does not run on TensorFlow.
        ValueError: If something is at `path`, a size is not positive, or ONNX
            cannot carry what `write` does: an operation that it or its
            converter lacks, bfloat16, sums beyond 32 bits, which are the
            seeds of random sampling.

    Example:
        >>> import onnxruntime, tempfile
        >>> import tensorflow as tf
        >>> path = Path(tempfile.mkdtemp(), "reverse.onnx")
        >>> write_onnx(lambda ids: (ids[:, ::-1], 0.5 * tf.ones(2)), path, 2)
        >>> session = onnxruntime.InferenceSession(path)
        >>> ids = np.array([[5, 6, 7], [8, 9, 0]], "int32")
        >>> session.run(["target_ids"], {"ids": ids})[0].tolist()
        [[7, 6, 5], [0, 9, 8]]
    """
    tf2onnx, onnx, onnxruntime = _import_packages()
    path = check_new_file(path)
    traced = trace_writer(write, batch_size, source_length)
    check_dtypes(_FORMAT, traced, ("bfloat16",))
    with _quiet("tf2onnx"):
        model, _ = tf2onnx.convert.from_function(
            traced,
            traced.input_signature,
            opset=_OPSET,
            custom_op_handlers={
                "XlaDynamicUpdateSlice": (_update_slice, []),
                "Erfc": (_complement_of_erf, []),
            },
        )
    unknown = {
        node.op_type
        for node in _nodes(model.graph)
        if not onnx.defs.has(node.op_type, node.domain)
    }
    if unknown:
        raise refuse_operations(_FORMAT, unknown)
    _name_sizes(model.graph)
    content = model.SerializeToString()

    def run(ids: np.ndarray) -> dict[str, np.ndarray]:
        session = onnxruntime.InferenceSession(
            content, providers=["CPUExecutionProvider"]
        )
        found = session.run(OUTPUT_NAMES, {INPUT_NAME: ids})
        return dict(zip(OUTPUT_NAMES, found, strict=True))

    check_results(_FORMAT, traced, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _update_slice(graph: Any, node: Any, name: str, args: Any) -> None:
    """Replace the operation of `ops.slice_update`, which ONNX lacks.

    Every number of the update is sent to its own place in the whole.
    """
    from onnx import TensorProto

    whole, update, start = node.input
    [output] = node.output
    dtypes, shapes = [graph.get_dtype(output)], [graph.get_shape(output)]

    def make(operation: str, *inputs: str, **attributes: Any) -> str:
        return graph.make_node(operation, inputs, attr=attributes).output[0]

    def constant(label: str, value: Any) -> str:
        return graph.make_const(f"{name}/{label}", np.array(value)).output[0]

    graph.remove_node(node.name)
    size = make("Shape", update)
    room = make("Sub", make("Shape", whole), size)
    # A start too far back is moved so that the update fits, as XLA does.
    before = make("Min", make("Cast", start, to=TensorProto.INT64), room)
    before = make("Max", before, constant("zero", np.int64(0)))
    ones = make("Expand", constant("true", True), size)
    places = make("Transpose", make("NonZero", ones), perm=[1, 0])
    graph.make_node(
        "ScatterND",
        [
            whole,
            make("Add", places, before),
            make("Reshape", update, constant("flat", np.array([-1]))),
        ],
        name=name,
        outputs=[output],
        dtypes=dtypes,
        shapes=shapes,
    )


def _complement_of_erf(graph: Any, node: Any, name: str, args: Any) -> None:
    """Replace an operation of the exact GELU, which ONNX lacks."""
    from tf2onnx.utils import map_onnx_to_numpy_type

    [tensor], [output] = node.input, node.output
    dtype, shape = graph.get_dtype(output), graph.get_shape(output)
    kind = map_onnx_to_numpy_type(dtype)
    graph.remove_node(node.name)
    one = graph.make_const(f"{name}/one", np.array(1, kind)).output[0]
    erf = graph.make_node("Erf", [tensor]).output[0]
    graph.make_node(
        "Sub",
        [one, erf],
        name=name,
        outputs=[output],
        dtypes=[dtype],
        shapes=[shape],
    )


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _name_sizes(graph: Any) -> None:
    # The converter numbers the sizes that it does not know.
    names = [("batch", "source_length"), *[("batch",)] * len(graph.output)]
    for tensor, known in zip([*graph.input, *graph.output], names, strict=True):
        sizes = tensor.type.tensor_type.shape.dim
        for size, name in zip(sizes, known, strict=False):
            if size.dim_param:
                size.dim_param = name


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    # What goes wrong is said by our own errors.
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _import_packages() -> tuple[Any, Any, Any]:
    try:
        import onnx
        import onnxruntime
        import tf2onnx.convert
    except ImportError as error:
        raise ImportError(
            "This export needs the packages `tf2onnx`, `onnx` and "
            f"`onnxruntime`, and `{error.name}` is missing. "
            "Run: pip install 'keras_tfm[export]'"
        ) from error
    return tf2onnx, onnx, onnxruntime

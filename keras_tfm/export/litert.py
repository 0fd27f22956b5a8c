"""A decoder from ids to ids as a LiteRT file, for phones and small machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from keras_tfm.export.ids_to_ids import OUTPUT_NAMES
from keras_tfm.export.ids_to_ids import check_dtypes
from keras_tfm.export.ids_to_ids import check_new_file
from keras_tfm.export.ids_to_ids import check_results
from keras_tfm.export.ids_to_ids import refuse
from keras_tfm.export.ids_to_ids import refuse_operations
from keras_tfm.export.ids_to_ids import trace_writer

_FORMAT = "LiteRT"

# Of integers of few bits the converter may make a file that computes something
# else.
_LACKING_DTYPES = ("bfloat16", "float16", "int4", "int8", "uint4", "uint8")


def write_litert(
    write: Callable[[Any], tuple[Any, Any]],
    path: str | Path,
    batch_size: int | None = None,
    source_length: int | None = None,
) -> None:
    """Write a decoder, with its weights and its whole loop, as a `.tflite`.

    The file needs the operations that are built into LiteRT and no others.
    Text stays outside: it is the caller who turns it into ids and back. The
    file's one signature `serving_default` maps `ids`, int32 `(batch,
    source_length)`, to `target_ids`, int32 `(batch, target_length)`, and
    `scores`, float32 `(batch,)`. Unless sizes are given here, any batch and
    any length will do:

    ```python
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter("translator.tflite").get_signature_runner()
    run(ids=ids)["target_ids"]
    ```

    The file is run once before it is written, and must score as `write` does.

    Args:
        write: Function of int32 ids `(batch, length)`, padded with 0, that
            returns int32 ids `(batch, target_length)` and float32 scores
            `(batch,)`. It must be made of TensorFlow operations.
        path: Path of the file, such as `translator.tflite`. Nothing may be
            there.
        batch_size: Positive integer, the only one that the file will take.
            Defaults to `None`: any.
        source_length: Positive integer, the only one that the file will take.
            Defaults to `None`: any.

    Raises:
        ImportError: If `ai-edge-litert` is missing.
        RuntimeError: If Keras does not run on TensorFlow.
        ValueError: If something is at `path`, a size is not positive, or LiteRT
            cannot carry what `write` does: an operation that it lacks, 16-bit
            arithmetic, quantized weights.

    Example:
        >>> import tempfile
        >>> from ai_edge_litert.interpreter import Interpreter
        >>> path = Path(tempfile.mkdtemp(), "reverse.tflite")
        >>> write_litert(lambda ids: (ids[:, ::-1], 0.5 * tf.ones(2)), path, 2)
        >>> run = Interpreter(str(path)).get_signature_runner()
        >>> run(ids=np.array([[5, 6, 7], [8, 9, 0]], "int32"))["target_ids"]
        array([[7, 6, 5],
               [0, 9, 8]], dtype=int32)
    """
    runtime = _import_runtime()
    path = check_new_file(path)
    traced = trace_writer(write, batch_size, source_length)
    check_dtypes(_FORMAT, traced, _LACKING_DTYPES)
    content = _convert(traced)

    def run(ids: np.ndarray) -> dict[str, np.ndarray]:
        interpreter = runtime.Interpreter(model_content=content)
        return interpreter.get_signature_runner()(ids=ids)

    check_results(_FORMAT, traced, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _convert(traced: tf.types.experimental.PolymorphicFunction) -> bytes:
    from tensorflow.lite.python.convert_phase import ConverterError

    named = _frozen(traced)
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [named.get_concrete_function()], tf.Module()
    )
    try:
        return converter.convert()
    except ConverterError as error:
        operations = {data.operator.name for data in error.errors} - {""}
        if not operations:
            reason = f"its converter says {str(error).strip()[:200]!r}."
            raise refuse(_FORMAT, reason) from error
        names = {name.removeprefix("tf.") for name in operations}
        raise refuse_operations(_FORMAT, names) from None


def _frozen(
    traced: tf.types.experimental.PolymorphicFunction,
) -> tf.types.experimental.PolymorphicFunction:
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    # A loop that reads variables converts, and fails where it runs.
    constant = convert_variables_to_constants_v2(
        traced.get_concrete_function(), lower_control_flow=False
    )
    # Frozen outputs have lost their names, and are in their order.
    names = sorted(OUTPUT_NAMES)
    return tf.function(
        lambda ids: dict(zip(names, constant(ids), strict=True)),
        input_signature=traced.input_signature,
        autograph=False,
    )


def _import_runtime() -> ModuleType:
    try:
        import ai_edge_litert.interpreter
    except ImportError as error:
        raise ImportError(
            "This export needs the package `ai-edge-litert`. "
            "Run: pip install 'keras_tfm[export]'"
        ) from error
    return ai_edge_litert.interpreter

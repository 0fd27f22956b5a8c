"""Try to compile a model with XLA on TensorFlow, and read what it says."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from keras_tfm.export.jit_report import AGAIN
from keras_tfm.export.jit_report import DYNAMIC
from keras_tfm.export.jit_report import JitFinding
from keras_tfm.export.jit_tracing import all_layers
from keras_tfm.export.jit_tracing import tracing_finding

_DYNAMIC = re.compile(r"Where|Unique\w*|DynamicPartition")
_NO_KERNEL = re.compile(r"No registered '(\w+)' OpKernel")
_NOT_CONSTANT = re.compile(
    r"node `([^`]+)` with op (\w+) must be a compile-time"
)
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_IN_PIPELINE = "Do it in the `tf.data` pipeline, and give the model numbers."

# Operations, why XLA cannot compile them, and what to do. The first that
# matches counts.
_SENTENCES = (
    (
        r"\w*PyFunc\w*",
        "It calls back into Python, which a compiled program cannot do.",
        "Write it with `keras.ops`, or do it in the `tf.data` pipeline.",
    ),
    (
        r"\w*(Lookup|Hash)Table\w*",
        "A table that maps words or ids lives outside of a compiled program.",
        _IN_PIPELINE,
    ),
    (
        r"Print\w*|StringFormat|Log\w*Summary|Write\w*Summary",
        "A compiled program cannot print or write.",
        "Return the value as a metric, or print it in a Keras callback.",
    ),
    (
        r"\w*(String|Regex|Unicode|Substr|Sentencepiece|Base64|Decode)\w*",
        "XLA knows numbers and no strings.",
        _IN_PIPELINE,
    ),
    (
        r"\w*Ragged\w*",
        "Rows of several lengths have no static shape.",
        "Pad them in the `tf.data` pipeline (`to_tensor`), and use a mask.",
    ),
    (
        r"Cudnn\w*",
        "The cuDNN kernels are a library's; XLA compiles its own alone.",
        "Make the layer with `use_cudnn=False`.",
    ),
)
_OTHER = (
    "XLA has no kernel for it on this device.",
    "Write it with other operations of `keras.ops`, or move it out of the "
    "model.",
)
_CONSTANT = (
    "A size or shape depends on the values of a tensor",
    "Keep all elements, and hide those not wanted with a mask "
    "(`keras.ops.where` with three arguments).",
)


def tensorflow_findings(
    model: keras.Layer, specs: Any, arguments: dict[str, Any]
) -> list[JitFinding]:
    """Trace a model, let XLA translate it, and explain what fails.

    Nothing is run: no weight changes.

    Args:
        model: A Keras model that is built.
        specs: Structure of `keras.KerasTensor`, whose shapes are known.
        arguments: Further arguments of the model's call.
    """
    # XLA's translator takes no structures, hence a flat list.
    inputs = [
        tf.TensorSpec(spec.shape, spec.dtype)
        for spec in keras.tree.flatten(specs)
    ]

    def call(*tensors: tf.Tensor) -> Any:
        return model(keras.tree.pack_sequence_as(specs, tensors), **arguments)

    # As in `fit`, where Keras does without autograph.
    function = tf.function(call, jit_compile=True, autograph=False)
    try:
        concrete = function.get_concrete_function(*inputs)
    except Exception as error:  # Whatever the layers of a user raise.
        return [tracing_finding(error, model)]
    names = {layer.name for layer in all_layers(model) if layer is not model}
    operations = list(_operations(concrete))
    findings = [
        JitFinding(
            _layer(path, names) or model.name,
            f"`{kind}`",
            "As many elements come out as the values say.",
            "On JAX, and where a layer needs to know the size, use a mask "
            "(`keras.ops.where` with three arguments).",
            DYNAMIC,
        )
        for kind, path in operations
        if _DYNAMIC.fullmatch(kind)
    ]
    said = _compiler_error(function, inputs)
    if said is not None:
        findings += _blockers(said, operations, names, model.name)
        if _NOT_CONSTANT.search(said):
            findings[-1] = _constant(function, inputs, findings[-1])
    return findings


def _compiler_error(function: Any, inputs: list[Any]) -> str | None:
    """Let XLA translate a function; return what it objects to."""
    place = {}
    if not tf.is_tensor(inputs[0]):
        gpus = tf.config.list_physical_devices("GPU")
        place["platform_name"] = "CUDA" if gpus else "CPU"
    try:
        function.experimental_get_compiler_ir(*inputs)("hlo", **place)
    except (tf.errors.OpError, ValueError) as error:
        return str(error)
    return None


def _blockers(
    said: str, operations: list[tuple[str, str]], names: set[str], model: str
) -> list[JitFinding]:
    """Return findings about all operations that XLA does not take."""
    if constant := _NOT_CONSTANT.search(said):
        return [
            JitFinding(
                _layer(constant[1], names) or model,
                f"`{constant[2]}`",
                f"{_CONSTANT[0]}.",
                _CONSTANT[1],
            )
        ]
    # XLA names the first of them, or none where the model has a table of words.
    missing = {kind for kind, _ in operations if not _has_kernel(kind)}
    missing |= set(_NO_KERNEL.findall(said))
    if missing:
        return [
            JitFinding(_layer(path, names) or model, f"`{kind}`", *_why(kind))
            for kind, path in operations
            if kind in missing
        ]
    node = _NODE.search(said)
    layer = (_layer(node[1], names) if node else "") or model
    first = said.removeprefix("Failed getting HLO text: '").splitlines()[0]
    return [
        JitFinding(
            layer,
            f"`{node[1]}`" if node else "the model",
            f"XLA says: {first.strip()}",
            "Write that part with other operations of `keras.ops`.",
        )
    ]


def _constant(
    function: Any, inputs: list[tf.TensorSpec], finding: JitFinding
) -> JitFinding:
    """Tell a size that XLA may take from the inputs from one it may not."""
    ones = [tf.ones(spec.shape, spec.dtype) for spec in inputs]
    said = _compiler_error(function, ones)
    if said is not None and _NOT_CONSTANT.search(said):
        return finding
    return JitFinding(
        finding.layer,
        finding.operation,
        f"{_CONSTANT[0]} of the input, so that XLA compiles a program for "
        "every value that comes.",
        finding.remedy,
        AGAIN,
    )


def _operations(concrete: Any) -> Iterator[tuple[str, str]]:
    """Yield the kind and the path of each operation, at any depth.

    The path of one in a loop or a branch begins with the loop's own.
    """
    graph = concrete.graph.as_graph_def()
    bodies = {f.signature.name: f.node_def for f in graph.library.function}

    def walk(nodes: Any, path: str) -> Iterator[tuple[str, str]]:
        for node in nodes:
            here = f"{path}{node.name}"
            called = [
                name
                for value in node.attr.values()
                for name in (
                    value.func.name,
                    *(f.name for f in value.list.func),
                )
                if name in bodies
            ]
            if not called and node.op != "Placeholder":
                yield node.op, here
            for name in called:
                yield from walk(bodies[name], f"{here}/")

    yield from walk(graph.node, "")


def _has_kernel(kind: str) -> bool:
    # TensorFlow has no public list of them.
    from tensorflow.python.framework import kernels

    _load_kernels()
    found = kernels.get_registered_kernels_for_op(kind).kernel
    devices = {kernel.device_type for kernel in found}
    return not devices or any(device.startswith("XLA_") for device in devices)


@functools.cache
def _load_kernels() -> None:
    """Let XLA translate something: before that it has no kernels."""
    double = tf.function(lambda x: x + x, jit_compile=True, autograph=False)
    _compiler_error(double, [tf.TensorSpec((), tf.float32)])


def _why(kind: str) -> tuple[str, str]:
    for pattern, reason, remedy in _SENTENCES:
        if re.fullmatch(pattern, kind):
            return reason, remedy
    return _OTHER


def _layer(path: str, names: set[str]) -> str:
    """Return the layers on the path of an operation, the outermost first."""
    found: list[str] = []
    for part in path.split("/")[:-1]:
        # TensorFlow numbers a name that comes again.
        plain = re.sub(r"_\d+$", "", part)
        name = part if part in names else plain
        if name in names and name not in found:
            found.append(name)
    return "/".join(found)

"""Say what keeps XLA from compiling a model, or makes it compile again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_tfm.export.jit_report import AGAIN
from keras_tfm.export.jit_report import BLOCKS
from keras_tfm.export.jit_report import OFF
from keras_tfm.export.jit_report import JitFinding
from keras_tfm.export.jit_report import JitReport
from keras_tfm.export.jit_report import make_report
from keras_tfm.export.jit_tracing import all_layers
from keras_tfm.export.jit_tracing import python_state
from keras_tfm.export.jit_tracing import side_effects
from keras_tfm.export.jit_tracing import tracing_finding
from keras_tfm.export.jit_tracing import whole_tracebacks

# What is tried where an input may have any size: rows, and other sizes.
_ROWS = 2
_LENGTH = 16


def explain_jit(model: keras.Layer, inputs: Any = None) -> JitReport:
    """Say what keeps XLA from compiling a model, and where in it.

    The model's call is traced as in training, and XLA translates it without
    running it. On TensorFlow every operation without a kernel is named with its
    layer, also those in loops and branches; on JAX, the first line that fails.
    Beside that the report tells what switches XLA off, what makes it compile
    one program more, and which Python code a program would not repeat. Losses,
    metrics and the optimizer are not looked at.

    Args:
        model: A Keras model or layer.
        inputs: A batch, or `keras.Input`s of known sizes, as the model takes
            it. Defaults to the inputs that a functional model was made with, of
            size 2 and 16 where they may have any.

    Returns:
        A `JitReport`: `report.blocked`, the findings in it, and all in words
        by `print(report)`.

    Raises:
        ValueError: If the inputs are not known and none are given.

    Example:
        >>> inputs = keras.Input((3,))
        >>> model = keras.Model(inputs, keras.layers.Dense(2)(inputs), name="m")
        >>> print(explain_jit(model))
        Nothing keeps XLA from compiling 'm' (inputs float32 (2, 3)).
    """
    given = inputs is not None
    wanted = inputs if given else _own_inputs(model)
    if not any(hasattr(x, "shape") for x in keras.tree.flatten(wanted)):
        wanted = np.asarray(wanted)  # Such as a list of texts.
    specs = keras.tree.map_structure(_spec, wanted)
    findings = [] if given else _any_size(wanted)
    findings += _settings(model)
    arguments = {}
    if "training" in inspect.signature(model.call).parameters:
        arguments["training"] = True
    with whole_tracebacks():
        failed = _build(model, specs)
        before = python_state(model)
        found = _backend_findings()(model, specs, arguments)
    if not found:
        # What cannot be built beforehand may be built while it is traced.
        found = failed if keras.backend.backend() == "jax" else []
    if not failed:
        found += side_effects(before, python_state(model))
    findings += found
    blocked = {
        name
        for finding in found
        if finding.effect == BLOCKS
        for name in finding.layer.split("/")
    }
    findings += [
        _unsupported(layer)
        for layer in all_layers(model)
        if not layer.supports_jit and layer.name not in blocked
    ]
    traced = ", ".join(
        f"{name} {spec.dtype} {tuple(spec.shape)}"
        for name, spec in _named(specs)
    )
    return make_report(model.name, findings, traced)


def _own_inputs(model: keras.Layer) -> Any:
    # A functional model knows how they are nested, others a list at best.
    inputs = getattr(model, "_inputs_struct", None)
    if inputs is None:
        inputs = getattr(model, "inputs", None)
        if not inputs:
            raise ValueError(
                f"The inputs of {model.name!r} are not known: it is no "
                "functional model. Give `inputs`, such as a batch."
            )
    return (
        inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else inputs
    )


def _spec(tensor: Any) -> keras.KerasTensor:
    shape = [
        size if size is not None else _LENGTH if axis else _ROWS
        for axis, size in enumerate(tensor.shape)
    ]
    text = isinstance(tensor, np.ndarray) and tensor.dtype.kind in "OSU"
    dtype = "string" if text else keras.backend.standardize_dtype(tensor.dtype)
    return keras.KerasTensor(shape, dtype, name=getattr(tensor, "name", None))


def _named(specs: Any) -> list[tuple[str, Any]]:
    if isinstance(specs, dict):
        return [(key, spec) for key in specs for _, spec in _named(specs[key])]
    if isinstance(specs, (list, tuple)):
        return [named for spec in specs for named in _named(spec)]
    return [("inputs", specs)]


def _any_size(inputs: Any) -> list[JitFinding]:
    # A last batch of fewer rows is no matter of the model.
    names = [
        f"{name} {tuple(tensor.shape)}"
        for name, tensor in _named(inputs)
        if None in tuple(tensor.shape)[1:]
    ]
    if not names:
        return []
    return [
        JitFinding(
            "",
            ", ".join(names),
            "XLA compiles a program for every combination of sizes that comes.",
            "Pad to a few lengths or pack, and fill the last batch up; "
            "`CompileBudget` tells of every new one.",
            AGAIN,
        )
    ]


def _settings(model: keras.Layer) -> list[JitFinding]:
    if not getattr(model, "compiled", False):
        return []
    if model.run_eagerly:
        return [
            JitFinding(
                "",
                "run_eagerly=True",
                "Keras runs each operation by itself, and makes no program.",
                "Compile the model with `run_eagerly=False`.",
                OFF,
            )
        ]
    if not model.jit_compile:
        return [
            JitFinding(
                "",
                "jit_compile=False",
                'The model was compiled without XLA, as Keras\'s "auto" does '
                "where there is no GPU or a layer does not support it.",
                "Call `model.compile(..., jit_compile=True)`, and look at "
                "`model.jit_compile`.",
                OFF,
            )
        ]
    return []


def _unsupported(layer: keras.Layer) -> JitFinding:
    reason = "The layer says that it cannot be compiled, so Keras turns "
    reason += "`jit_compile=True` into `False`, with a warning."
    remedy = "Move it out of the model, into the `tf.data` pipeline."
    if getattr(layer, "use_cudnn", False):
        remedy = "Make it with `use_cudnn=False`."
    return JitFinding(layer.name, "`supports_jit=False`", reason, remedy, OFF)


def _build(model: keras.Layer, specs: Any) -> list[JitFinding]:
    """Build a model that is not; return why it cannot be."""
    if model.built:
        return []
    try:
        model(specs)
    except Exception as error:  # Whatever the layers of a user raise.
        return [tracing_finding(error, model)]
    return []


def _backend_findings() -> Callable[..., list[JitFinding]]:
    if keras.backend.backend() == "jax":
        return _jax_findings
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "XLA compiles on the TensorFlow and JAX backends. Keras runs on "
            f"{keras.backend.backend()}."
        )
    from keras_tfm.export.jit_tensorflow import tensorflow_findings

    return tensorflow_findings


def _jax_findings(
    model: keras.Layer, specs: Any, arguments: dict[str, Any]
) -> list[JitFinding]:
    import jax

    if any(spec.dtype == "string" for spec in keras.tree.flatten(specs)):
        return [
            JitFinding(
                model.name,
                "an input of strings",
                "JAX and XLA know numbers and no strings.",
                "Tokenize in the `tf.data` pipeline, and give the model ids.",
            )
        ]

    def call(values: list[Any], inputs: Any) -> Any:
        mapping = list(zip(model.variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return model(inputs, **arguments)

    tensors = keras.tree.map_structure(
        lambda spec: jax.ShapeDtypeStruct(spec.shape, spec.dtype), specs
    )
    try:
        values = [variable.value for variable in model.variables]
        jax.jit(call).lower(values, tensors)
    except Exception as error:  # Whatever the layers of a user raise.
        return [tracing_finding(error, model)]
    return []

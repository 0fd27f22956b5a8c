"""Why a model could not be traced, in one sentence, and in which layer."""

from __future__ import annotations

import contextlib
import linecache
import re
import types
from collections.abc import Iterator
from typing import Any

import keras

from keras_tfm.export.jit_report import ONCE
from keras_tfm.export.jit_report import JitFinding

# Calls of Keras itself, which say nothing about where a layer failed.
_PASSED_ON = {"__call__", "error_handler", "symbolic_call", "wrapper"}
_STYLE = re.compile(r"\x1b\[\d*m")

# What an error says, why it is one, and what to do instead. The first that is
# found counts.
_SENTENCES = (
    (
        r"cuDNN",
        "The cuDNN kernels are a library's, XLA compiles its own alone, and "
        "here they cannot even be called.",
        'Make the layer with `use_cudnn=False` (or "auto").',
    ),
    (
        r"Python `?bool|TracerBool|boolean value of traced|truth value",
        "Python decides by the value of a tensor, which has none while the "
        "model is traced.",
        "Decide with `keras.ops.where` or `keras.ops.cond`.",
    ),
    (
        r"to a numpy array|__array__|no attribute 'numpy'",
        "NumPy asks for the values of a tensor, which has none while the "
        "model is traced.",
        "Compute with `keras.ops` instead of NumPy and `.numpy()`.",
    ),
    (
        r"size argument of jnp|NonConcreteBoolean|must be concrete|"
        r"concrete value|interpreted as an integer|Shapes must be 1D",
        "A size depends on the values of a tensor, and a program has static "
        "sizes.",
        "Keep all elements, and hide those not wanted with a mask "
        "(`keras.ops.where` with three arguments).",
    ),
)


def tracing_finding(error: Exception, model: keras.Layer) -> JitFinding:
    """Translate an error of tracing a model.

    Args:
        error: What was raised.
        model: What was traced.
    """
    errors = list(_with_causes(error))
    layer, line = _place([e.__traceback__ for e in errors])
    said = [f"{type(e).__name__}: {e}" for e in errors]
    text = _STYLE.sub("", "\n".join(said))
    reason = f"Tracing it fails: {_said(text)}"
    remedy = (
        "Call the model on a batch to see the whole error; if its inputs have "
        "other sizes than those tried, give `inputs`."
    )
    for pattern, known_reason, known_remedy in _SENTENCES:
        if re.search(pattern, text):
            reason, remedy = known_reason, known_remedy
            break
    name = model.name if layer is None else layer.name
    return JitFinding(name, f"`{line}`" if line else "its call", reason, remedy)


@contextlib.contextmanager
def whole_tracebacks() -> Iterator[None]:
    """Let errors keep the frames of Keras, which know their layers."""
    filtered = keras.config.is_traceback_filtering_enabled()
    keras.config.disable_traceback_filtering()
    try:
        yield
    finally:
        if filtered:
            keras.config.enable_traceback_filtering()


def python_state(model: keras.Layer) -> dict[tuple[str, str], Any]:
    """Return the plain attributes of all layers of a model, by their names."""
    state = {}
    for layer in all_layers(model):
        for name, value in vars(layer).items():
            if name.startswith("_") or name in ("built", "supports_jit"):
                continue
            if isinstance(value, (bool, int, float, str)):
                state[layer.name, name] = value
            elif isinstance(value, (list, dict, set)):
                state[layer.name, name] = len(value)
    return state


def side_effects(
    before: dict[tuple[str, str], Any], after: dict[tuple[str, str], Any]
) -> list[JitFinding]:
    """Return a finding for each attribute that tracing has changed."""
    return [
        JitFinding(
            layer,
            f"`self.{name}`",
            "Python code of the layer changes it: that happens while a program "
            "is made, and not in the steps that run it.",
            "Make it a weight (`self.add_weight(..., trainable=False)`) and "
            "`assign` to it.",
            ONCE,
        )
        for (layer, name), value in before.items()
        if after.get((layer, name), value) != value
    ]


def all_layers(model: keras.Layer) -> list[keras.Layer]:
    """Return a layer and all layers in it, at any depth."""
    return list(model._flatten_layers())


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what failed first, then what was raised because of it."""
    if cause := error.__cause__ or error.__context__:
        yield from _with_causes(cause)
    yield error


def _place(
    tracebacks: list[types.TracebackType | None],
) -> tuple[keras.Layer | None, str]:
    """Return the innermost layer, and the line of its code if it is known."""
    calls = [
        call
        for traceback in tracebacks
        for call in reversed(list(_calls(traceback)))
    ]
    if not calls:
        return None, ""
    layer = calls[0][0]
    lines = [line for owner, line in calls if owner is layer and line]
    return layer, next(iter(lines), "")


def _calls(
    traceback: types.TracebackType | None,
) -> Iterator[tuple[keras.Layer, str]]:
    while traceback is not None:
        code = traceback.tb_frame.f_code
        owner = traceback.tb_frame.f_locals.get("self")
        if isinstance(owner, keras.Layer) and code.co_name not in _PASSED_ON:
            module = traceback.tb_frame.f_globals.get("__name__", "")
            of_keras = module.partition(".")[0] == "keras"
            line = linecache.getline(code.co_filename, traceback.tb_lineno)
            yield owner, "" if of_keras else line.strip()
        traceback = traceback.tb_next


def _said(text: str) -> str:
    """Return the first telling line of an error, as a sentence."""
    kind, _, message = text.partition(": ")
    lines = [line.strip() for line in message.splitlines()]
    telling = [
        line
        for line in lines
        if line
        and not line.startswith(
            ("Exception encountered", "in user code", "File")
        )
    ]
    said = telling[0] if telling else kind
    return said if said.endswith(".") else f"{said}."

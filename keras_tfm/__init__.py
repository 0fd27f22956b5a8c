"""The Transformer as Keras 3 layers: right, fast, and easy to take apart."""

import importlib
import pathlib
import sys

__version__ = "0.1.0"

_COMMAND = "keras-tfm"


def _is_command_line():
    # `python -m keras_tfm` has the module's name only where Python began.
    program, *_ = getattr(sys, "argv", None) or [""]
    if program == "-m":
        return "keras_tfm" in sys.orig_argv
    return pathlib.Path(program).stem == _COMMAND


# The command line must answer `--help` at once, and silence TensorFlow before
# it is imported. Anywhere else the import registers all that can be loaded.
if not _is_command_line():
    from keras_tfm import generation
    from keras_tfm import layers
    from keras_tfm import models
    from keras_tfm import ops
    from keras_tfm import training

# These need TensorFlow or heavier packages: imported when first asked for. The
# command line imports the others like this, too.
_LAZY_PACKAGES = (
    "data",
    "export",
    "generation",
    "layers",
    "models",
    "ops",
    "tasks",
    "text",
    "training",
    "visualization",
)
_LAZY_NAMES = {"Translator": "keras_tfm.tasks.translation"}

__all__ = [
    "Translator",
    "data",
    "export",
    "generation",
    "layers",
    "models",
    "ops",
    "tasks",
    "text",
    "training",
    "visualization",
]


def __getattr__(name):
    if name in _LAZY_PACKAGES:
        return importlib.import_module(f"keras_tfm.{name}")
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(_LAZY_NAMES[name]), name)
    raise AttributeError(f"module 'keras_tfm' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})

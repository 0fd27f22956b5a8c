"""The Transformer as Keras 3 layers: right, fast, and easy to take apart."""

import importlib

from keras_tfm import generation
from keras_tfm import layers
from keras_tfm import models
from keras_tfm import ops
from keras_tfm import training

__version__ = "0.1.0"

# These need TensorFlow or heavier packages: imported when first asked for.
_LAZY_PACKAGES = ("data", "export", "tasks", "text")
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
]


def __getattr__(name):
    if name in _LAZY_PACKAGES:
        return importlib.import_module(f"keras_tfm.{name}")
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(_LAZY_NAMES[name]), name)
    raise AttributeError(f"module 'keras_tfm' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})

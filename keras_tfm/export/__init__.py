"""Ship a trained model: a SavedModel that takes and returns strings."""

from keras_tfm.export.explain_jit import explain_jit
from keras_tfm.export.jit_report import JitFinding
from keras_tfm.export.jit_report import JitReport
from keras_tfm.export.text_to_text import TextToText

__all__ = ["JitFinding", "JitReport", "TextToText", "explain_jit"]

"""Ship a trained model: a SavedModel that takes and returns strings."""

from keras_tfm.export.text_to_text import TextToText

__all__ = ["TextToText"]

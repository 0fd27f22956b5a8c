"""Data, model, loss and decoder in one object."""

from keras_tfm.tasks.scores import Score
from keras_tfm.tasks.scores import bleu
from keras_tfm.tasks.scores import chrf
from keras_tfm.tasks.scores import exact_match
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.tensorboard_log import TensorBoardLog
from keras_tfm.tasks.translation import Translator

__all__ = [
    "Score",
    "TensorBoardLog",
    "TrainingSettings",
    "Translator",
    "bleu",
    "chrf",
    "exact_match",
]

"""Losses, metrics and learning-rate schedules."""

from keras_tfm.training.losses import SmoothedCrossEntropy
from keras_tfm.training.metrics import Perplexity
from keras_tfm.training.metrics import TokenAccuracy
from keras_tfm.training.schedules import InverseSquareRoot
from keras_tfm.training.schedules import PaperSchedule
from keras_tfm.training.schedules import Tensor2TensorSchedule

__all__ = [
    "InverseSquareRoot",
    "PaperSchedule",
    "Perplexity",
    "SmoothedCrossEntropy",
    "Tensor2TensorSchedule",
    "TokenAccuracy",
]

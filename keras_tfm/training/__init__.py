"""Losses, metrics, learning-rate schedules, checkpoints."""

from keras_tfm.training.checkpoint import TrainingCheckpoint
from keras_tfm.training.checkpoint import load_checkpoint
from keras_tfm.training.checkpoint import save_checkpoint
from keras_tfm.training.losses import SmoothedCrossEntropy
from keras_tfm.training.metrics import Perplexity
from keras_tfm.training.metrics import TokenAccuracy
from keras_tfm.training.schedules import InverseSquareRoot
from keras_tfm.training.schedules import PaperSchedule
from keras_tfm.training.schedules import Tensor2TensorSchedule
from keras_tfm.training.stopping import FailOnNaN
from keras_tfm.training.stopping import StopAfterMinutes
from keras_tfm.training.stopping import StopAfterSteps

__all__ = [
    "FailOnNaN",
    "InverseSquareRoot",
    "PaperSchedule",
    "Perplexity",
    "SmoothedCrossEntropy",
    "StopAfterMinutes",
    "StopAfterSteps",
    "Tensor2TensorSchedule",
    "TokenAccuracy",
    "TrainingCheckpoint",
    "load_checkpoint",
    "save_checkpoint",
]

"""Losses, metrics, schedules, checkpoints, averaging, validation."""

from keras_tfm.training.checkpoint import TrainingCheckpoint
from keras_tfm.training.checkpoint import load_checkpoint
from keras_tfm.training.checkpoint import save_checkpoint
from keras_tfm.training.checkpoint_averaging import CheckpointAveraging
from keras_tfm.training.compile_budget import CompileBudget
from keras_tfm.training.losses import SmoothedCrossEntropy
from keras_tfm.training.metric_sums import MetricSums
from keras_tfm.training.metrics import ChunkedAccuracy
from keras_tfm.training.metrics import ChunkedPerplexity
from keras_tfm.training.metrics import Perplexity
from keras_tfm.training.metrics import TokenAccuracy
from keras_tfm.training.moving_average import MovingAverage
from keras_tfm.training.schedules import InverseSquareRoot
from keras_tfm.training.schedules import PaperSchedule
from keras_tfm.training.schedules import Tensor2TensorSchedule
from keras_tfm.training.snapshots import BestSnapshots
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots
from keras_tfm.training.stopping import FailOnNaN
from keras_tfm.training.stopping import StopAfterMinutes
from keras_tfm.training.stopping import StopAfterSteps
from keras_tfm.training.training_log import TrainingLog
from keras_tfm.training.training_log_file import read_training_log
from keras_tfm.training.validation import Validation

__all__ = [
    "BestSnapshots",
    "CheckpointAveraging",
    "ChunkedAccuracy",
    "ChunkedPerplexity",
    "CompileBudget",
    "FailOnNaN",
    "InverseSquareRoot",
    "LastSnapshots",
    "MetricSums",
    "MovingAverage",
    "PaperSchedule",
    "Perplexity",
    "SmoothedCrossEntropy",
    "Snapshots",
    "StopAfterMinutes",
    "StopAfterSteps",
    "Tensor2TensorSchedule",
    "TokenAccuracy",
    "TrainingCheckpoint",
    "TrainingLog",
    "Validation",
    "load_checkpoint",
    "read_training_log",
    "save_checkpoint",
]

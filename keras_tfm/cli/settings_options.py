"""The options of `keras-tfm train` that are the settings of a training."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from keras_tfm.cli.train_options import panel_option


class Batching(StrEnum):
    """How sentence pairs are put into batches."""

    packed = "packed"
    buckets = "buckets"


class OptimizerName(StrEnum):
    """What turns gradients into updates."""

    adam = "adam"
    adamw = "adamw"
    muon = "muon"


_BATCHES = "Batches"
_OPTIMIZER = "Optimizer and loss"
_AVERAGE = "Average of the weights: one of the two, or none"

BatchingOption = Annotated[
    Batching | None,
    panel_option(
        "--batching",
        "packed: several pairs share a row, and one program is compiled. "
        "buckets: a pair a row, in a few shapes.",
        _BATCHES,
        "packed",
    ),
]
TokensPerBatchOption = Annotated[
    int | None,
    panel_option(
        "--tokens-per-batch",
        "Positions of a batch, on its longer side.",
        _BATCHES,
        "4096",
    ),
]
RowLengthOption = Annotated[
    int | None,
    panel_option(
        "--row-length",
        "Positions of a packed row.",
        _BATCHES,
        "room for the longest pair, and for four",
    ),
]
MaxShapesOption = Annotated[
    int | None,
    panel_option(
        "--max-shapes",
        "Shapes of buckets at most; each is compiled.",
        _BATCHES,
        "4",
    ),
]
AccumulationStepsOption = Annotated[
    int | None,
    panel_option(
        "--accumulation-steps",
        "Packed batches that make one update together.",
        _BATCHES,
        "1",
    ),
]
SubwordDropoutOption = Annotated[
    float | None,
    panel_option(
        "--subword-dropout",
        "Share of the merges of bpe left out, other ones in each epoch, such "
        "as 0.1.",
        _BATCHES,
        "0",
    ),
]
BidirectionalEpochsOption = Annotated[
    int | None,
    panel_option(
        "--bidirectional-epochs",
        "Epochs at the beginning that learn to translate both ways.",
        _BATCHES,
        "0",
    ),
]
SeedOption = Annotated[
    int | None,
    panel_option("--seed", "Of all random numbers.", _BATCHES, "0"),
]
OptimizerOption = Annotated[
    OptimizerName | None,
    panel_option("--optimizer", "What makes the updates.", _OPTIMIZER, "adam"),
]
PeakRateOption = Annotated[
    float | None,
    panel_option("--peak-rate", "Highest learning rate.", _OPTIMIZER, "0.002"),
]
WarmupStepsOption = Annotated[
    int | None,
    panel_option("--warmup-steps", "Steps until the peak.", _OPTIMIZER, "1000"),
]
DecayStepsOption = Annotated[
    int | None,
    panel_option(
        "--decay-steps",
        "Step at which the rate has fallen to almost 0, along a cosine.",
        _OPTIMIZER,
        "falls with 1/sqrt(step)",
    ),
]
Beta2Option = Annotated[
    float | None, panel_option("--beta-2", "Of Adam.", _OPTIMIZER, "0.98")
]
WeightDecayOption = Annotated[
    float | None,
    panel_option(
        "--weight-decay", "In [0, 1), for adamw and muon.", _OPTIMIZER, "0"
    ),
]
ClipNormOption = Annotated[
    float | None,
    panel_option(
        "--clip-norm", "Largest norm of a gradient.", _OPTIMIZER, "no limit"
    ),
]
LabelSmoothingOption = Annotated[
    float | None,
    panel_option("--label-smoothing", "In [0, 1).", _OPTIMIZER, "0.1"),
]
AverageLastOption = Annotated[
    int | None,
    panel_option(
        "--average-last",
        "Snapshots of the weights whose mean the model gets, such as 10.",
        _AVERAGE,
        "0: the last weights",
    ),
]
SnapshotStepsOption = Annotated[
    int | None,
    panel_option(
        "--snapshot-steps",
        "Updates between two snapshots.",
        _AVERAGE,
        "an epoch",
    ),
]
EmaMomentumOption = Annotated[
    float | None,
    panel_option(
        "--ema-momentum",
        "Of a moving average of the weights, such as 0.999.",
        _AVERAGE,
        "0: no average",
    ),
]

"""The options of `keras-tfm train` besides the data: model, training, end."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TokenizerKind(StrEnum):
    """How text is cut into tokens."""

    bpe = "bpe"
    characters = "characters"


def _option(
    name: str, text: str, panel: str, default: str | bool = False
) -> typer.models.OptionInfo:
    return typer.Option(
        name, help=text, rich_help_panel=panel, show_default=default
    )


_FOLDER = "Folder"
_VALIDATION = "Validation, scored at the end"
_TEXT = "Tokenizers"
_MODEL = "Model: a preset's sizes, or the defaults of Transformer"
_TRAINING = "Training"
_END = "End: one of the two, or both"

FolderOption = Annotated[
    Path,
    _option("--folder", "Where the training and its model are kept.", _FOLDER),
]
ValidationSourceOption = Annotated[
    Path | None,
    _option("--validation-source", "As --source.", _VALIDATION),
]
ValidationTargetOption = Annotated[
    Path | None,
    _option("--validation-target", "As --target.", _VALIDATION),
]
ValidationTsvOption = Annotated[
    Path | None, _option("--validation-tsv", "As --tsv.", _VALIDATION)
]
ValidationSplitOption = Annotated[
    str | None,
    _option(
        "--validation-split",
        "Split of --tfds or --translate-folder, such as validation.",
        _VALIDATION,
    ),
]
TokenizerOption = Annotated[
    TokenizerKind | None,
    _option("--tokenizer", "How to cut text into tokens.", _TEXT, "bpe"),
]
VocabularySizeOption = Annotated[
    int | None,
    _option("--vocabulary-size", "Entries of bpe.", _TEXT, "8000"),
]
JointOption = Annotated[
    bool | None,
    _option(
        "--joint/--separate",
        "One vocabulary for both sides, or one for each.",
        _TEXT,
        "joint",
    ),
]
PresetOption = Annotated[
    str | None,
    _option("--preset", "Published sizes, such as transformer_base.", _MODEL),
]
NumLayersOption = Annotated[
    int | None,
    _option("--num-layers", "Blocks of the encoder, and decoder.", _MODEL),
]
NumDecoderLayersOption = Annotated[
    int | None, _option("--num-decoder-layers", "If they are other.", _MODEL)
]
HiddenDimOption = Annotated[
    int | None, _option("--hidden-dim", "Width of the model.", _MODEL)
]
IntermediateDimOption = Annotated[
    int | None,
    _option("--intermediate-dim", "Width of the feed-forward part.", _MODEL),
]
NumHeadsOption = Annotated[
    int | None, _option("--num-heads", "Heads of each attention.", _MODEL)
]
DropoutOption = Annotated[
    float | None, _option("--dropout", "Share dropped, in [0, 1).", _MODEL)
]
MaxSequenceLengthOption = Annotated[
    int | None,
    _option(
        "--max-sequence-length",
        "Longest text in tokens; longer pairs are left out.",
        _MODEL,
        "128",
    ),
]
TokensPerBatchOption = Annotated[
    int | None,
    _option("--tokens-per-batch", "Positions of a batch.", _TRAINING, "4096"),
]
MaxShapesOption = Annotated[
    int | None,
    _option(
        "--max-shapes",
        "Batch shapes at most; each is compiled.",
        _TRAINING,
        "4",
    ),
]
PeakRateOption = Annotated[
    float | None,
    _option("--peak-rate", "Highest learning rate.", _TRAINING, "0.002"),
]
WarmupStepsOption = Annotated[
    int | None,
    _option("--warmup-steps", "Steps until the peak.", _TRAINING, "1000"),
]
DecayStepsOption = Annotated[
    int | None,
    _option(
        "--decay-steps",
        "Step at which the rate has fallen to almost 0, along a cosine.",
        _TRAINING,
        "falls with 1/sqrt(step)",
    ),
]
LabelSmoothingOption = Annotated[
    float | None,
    _option("--label-smoothing", "In [0, 1).", _TRAINING, "0.1"),
]
EmaMomentumOption = Annotated[
    float | None,
    _option(
        "--ema-momentum",
        "Of a moving average of the weights, such as 0.999.",
        _TRAINING,
        "0: no average",
    ),
]
SeedOption = Annotated[
    int | None, _option("--seed", "Of all random numbers.", _TRAINING, "0")
]
StepsOption = Annotated[int | None, _option("--steps", "Updates.", _END)]
MaxMinutesOption = Annotated[
    float | None,
    _option("--max-minutes", "Time to train, compiling included.", _END),
]
CheckpointMinutesOption = Annotated[
    float | None,
    _option(
        "--checkpoint-minutes",
        "Time between checkpoints: what a power cut loses at most.",
        _FOLDER,
        "2",
    ),
]
ResumeOption = Annotated[
    bool,
    _option("--resume", "Go on with the training in --folder.", _FOLDER),
]
OverwriteOption = Annotated[
    bool,
    _option("--overwrite", "Replace the training in --folder.", _FOLDER),
]

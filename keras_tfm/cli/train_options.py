"""The options of `keras-tfm train` besides data and settings: model, end."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TokenizerKind(StrEnum):
    """How text is cut into tokens."""

    bpe = "bpe"
    characters = "characters"


class TrainingMetric(StrEnum):
    """What a translator is scored by, on validation pairs."""

    bleu = "bleu"
    exact = "exact"
    loss = "loss"


def panel_option(
    name: str, text: str, panel: str, default: str | bool = False
) -> typer.models.OptionInfo:
    """Make an option that the help shows in a panel.

    Args:
        name: String, such as `"--steps"` or `"--joint/--separate"`.
        text: String. What the option is.
        panel: String, the panel's title.
        default: String, what holds where the option is not given, as the help
            shows it. Defaults to `False`: nothing is shown.
    """
    return typer.Option(
        name, help=text, rich_help_panel=panel, show_default=default
    )


_FOLDER = "Folder"
_VALIDATION = "Validation: scored at the end, or while training"
_TEXT = "Tokenizers"
_MODEL = "Model: a preset's sizes, or the defaults of Transformer"
_END = "End: one of the two, or both"

FolderOption = Annotated[
    Path,
    panel_option(
        "--folder", "Where the training and its model are kept.", _FOLDER
    ),
]
ValidationSourceOption = Annotated[
    Path | None,
    panel_option("--validation-source", "As --source.", _VALIDATION),
]
ValidationTargetOption = Annotated[
    Path | None,
    panel_option("--validation-target", "As --target.", _VALIDATION),
]
ValidationTsvOption = Annotated[
    Path | None, panel_option("--validation-tsv", "As --tsv.", _VALIDATION)
]
ValidationDatesOption = Annotated[
    int | None,
    panel_option(
        "--validation-dates", "As --dates, of other days.", _VALIDATION
    ),
]
ValidationSplitOption = Annotated[
    str | None,
    panel_option(
        "--validation-split",
        "Split of --tfds or --translate-folder, such as validation.",
        _VALIDATION,
    ),
]
MetricOption = Annotated[
    TrainingMetric | None,
    panel_option(
        "--metric",
        "bleu: BLEU and chrF. exact: share of equal texts. loss: translates "
        "nothing, only while training.",
        _VALIDATION,
        "bleu",
    ),
]
ValidationStepsOption = Annotated[
    int | None,
    panel_option(
        "--validation-steps",
        "Score every so many updates, and keep the weights that were best.",
        _VALIDATION,
        "at the end; each epoch with --patience",
    ),
]
PatienceOption = Annotated[
    int | None,
    panel_option(
        "--patience",
        "Stop after so many scores in a row without a better one.",
        _VALIDATION,
    ),
]
MonitorOption = Annotated[
    str | None,
    panel_option(
        "--monitor",
        "Score that decides what is best, such as validation_loss.",
        _VALIDATION,
        "that of --metric",
    ),
]
TokenizerOption = Annotated[
    TokenizerKind | None,
    panel_option("--tokenizer", "How to cut text into tokens.", _TEXT, "bpe"),
]
VocabularySizeOption = Annotated[
    int | None,
    panel_option("--vocabulary-size", "Entries of bpe.", _TEXT, "8000"),
]
JointOption = Annotated[
    bool | None,
    panel_option(
        "--joint/--separate",
        "One vocabulary for both sides, or one for each.",
        _TEXT,
        "joint",
    ),
]
PresetOption = Annotated[
    str | None,
    panel_option(
        "--preset", "Published sizes, such as transformer_base.", _MODEL
    ),
]
NumLayersOption = Annotated[
    int | None,
    panel_option("--num-layers", "Blocks of the encoder, and decoder.", _MODEL),
]
NumDecoderLayersOption = Annotated[
    int | None,
    panel_option("--num-decoder-layers", "If they are other.", _MODEL),
]
HiddenDimOption = Annotated[
    int | None, panel_option("--hidden-dim", "Width of the model.", _MODEL)
]
IntermediateDimOption = Annotated[
    int | None,
    panel_option(
        "--intermediate-dim", "Width of the feed-forward part.", _MODEL
    ),
]
NumHeadsOption = Annotated[
    int | None, panel_option("--num-heads", "Heads of each attention.", _MODEL)
]
DropoutOption = Annotated[
    float | None, panel_option("--dropout", "Share dropped, in [0, 1).", _MODEL)
]
AttentionDropoutOption = Annotated[
    float | None,
    panel_option(
        "--attention-dropout", "Share of the attention dropped.", _MODEL
    ),
]
ActivationDropoutOption = Annotated[
    float | None,
    panel_option(
        "--activation-dropout",
        "Share dropped inside the feed-forward part.",
        _MODEL,
    ),
]
PreNormOption = Annotated[
    bool | None,
    panel_option(
        "--pre-norm/--post-norm",
        "Normalize before each part, or after it.",
        _MODEL,
    ),
]
MaxSequenceLengthOption = Annotated[
    int | None,
    panel_option(
        "--max-sequence-length",
        "Longest text in tokens; longer pairs are left out.",
        _MODEL,
        "128",
    ),
]
StepsOption = Annotated[int | None, panel_option("--steps", "Updates.", _END)]
MaxMinutesOption = Annotated[
    float | None,
    panel_option("--max-minutes", "Time to train, compiling included.", _END),
]
CheckpointMinutesOption = Annotated[
    float | None,
    panel_option(
        "--checkpoint-minutes",
        "Time between checkpoints: what a power cut loses at most.",
        _FOLDER,
        "2",
    ),
]
ResumeOption = Annotated[
    bool,
    panel_option("--resume", "Go on with the training in --folder.", _FOLDER),
]
OverwriteOption = Annotated[
    bool,
    panel_option("--overwrite", "Replace the training in --folder.", _FOLDER),
]
TensorBoardOption = Annotated[
    bool,
    panel_option(
        "--tensorboard", "Write the log for TensorBoard, too.", _FOLDER
    ),
]

"""The folder of a training: what it began with, and what may be replaced."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_tfm.cli.data_options import DataSource

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs

TRAINING_FILE = "training.json"
CHECKPOINT_FILE = "checkpoint.npz"
RECIPE_FILE = "recipe.yaml"
LOG_FILE = "training_log.csv"
CURVES_FILE = "curves.png"
# All that a training writes.
_FILES = (
    TRAINING_FILE,
    "translator.json",
    "model.keras",
    CHECKPOINT_FILE,
    RECIPE_FILE,
    LOG_FILE,
    CURVES_FILE,
)
_EVENT_FILES = "events.out.tfevents.*"
_FOLDERS = ("source_tokenizer", "target_tokenizer")
# Folders that may hold something else as well, and what is ours in them.
_SNAPSHOT_FOLDERS = ("snapshots", "best")
_SNAPSHOTS = ("step_*.npz", ".step_*.npz.*")


@dataclasses.dataclass(frozen=True)
class TrainingPlan:
    """What a training began with, so that it can be resumed.

    Attributes:
        data: Where the training pairs come from.
        validation: Where the validation pairs come from, if there are any.
        settings: The arguments of `TrainingSettings`.
        ends: `steps`, `max_minutes` and `checkpoint_minutes`.
        scoring: `metric`, `tokenize` and `lowercase` of the validation.
        validating: `every_steps`, `patience` and `monitor` of a validation
            while training; empty for one at the end.
        arguments: Of `Translator.from_pairs`: tokenizer and model.
        tensorboard: Boolean. Whether the log is written for TensorBoard, too.
        fingerprint: String that changes with the training pairs.
    """

    data: DataSource
    validation: DataSource
    settings: dict[str, Any]
    ends: dict[str, Any]
    scoring: dict[str, Any]
    validating: dict[str, Any] = dataclasses.field(default_factory=dict)
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    tensorboard: bool = False
    fingerprint: str = ""

    def save(self, folder: Path) -> None:
        """Write the plan; it is there entirely or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".new.{TRAINING_FILE}"
        content = json.dumps(dataclasses.asdict(self), indent=2)
        temporary.write_text(content, encoding="utf-8")
        temporary.replace(folder / TRAINING_FILE)

    @classmethod
    def load(cls, folder: Path) -> TrainingPlan:
        """Read the plan of a folder.

        Raises:
            ValueError: If no training has begun in the folder.
        """
        path = folder / TRAINING_FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                **{
                    **content,
                    "data": DataSource(**content["data"]),
                    "validation": DataSource(**content["validation"]),
                }
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"There is no training to resume in {folder}: {TRAINING_FILE} "
                "is missing or unreadable. Give the --folder of a training, or "
                "begin one without --resume."
            ) from error


def fingerprint(pairs: SentencePairs) -> str:
    """Return a string that changes with any text or its place.

    Example:
        >>> from keras_tfm.data.sentence_pairs import SentencePairs
        >>> one = fingerprint(SentencePairs(["a"], ["b"]))
        >>> len(one), one == fingerprint(SentencePairs(["a"], ["c"]))
        (64, False)
    """
    digest = hashlib.sha256()
    for source, target in pairs:
        for text in (source, target):
            content = text.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "big"))
            digest.update(content)
    return digest.hexdigest()


def check_new(folder: Path, overwrite: bool) -> None:
    """Raise `ValueError` if a new training would destroy something.

    Args:
        folder: Path of the training's folder.
        overwrite: Boolean. Whether an older training may be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder.")
    found = _written(folder)
    if found and not overwrite:
        name = found[0].relative_to(folder)
        raise ValueError(
            f"{folder} holds a training or a model already ({name}). Go "
            "on with --resume, replace it with --overwrite, or give another "
            "--folder."
        )


def remove_training(folder: Path) -> None:
    """Remove what an older training wrote to a folder, and nothing else."""
    for path in _written(folder):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    for name in _SNAPSHOT_FOLDERS:
        # Not empty if something of somebody else's is in it.
        with contextlib.suppress(OSError):
            (folder / name).rmdir()


def _written(folder: Path) -> list[Path]:
    named = [folder / name for name in (*_FILES, *_FOLDERS)]
    found = [path for path in named if path.exists()]
    found += sorted(folder.glob(_EVENT_FILES))
    for name in _SNAPSHOT_FOLDERS:
        for pattern in _SNAPSHOTS:
            found += sorted((folder / name).glob(pattern))
    return found

"""The folder of a translator: tokenizers, settings and weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras

# Registers the models: a folder may be the first thing a process loads.
import keras_tfm.models.transformer.transformer  # noqa: F401
from keras_tfm.text.loading import load_tokenizer

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator

CONFIG_FILE = "translator.json"
MODEL_FILE = "model.keras"


def save_translator(
    translator: Translator, folder: Path, weights: bool = True
) -> None:
    """Write a translator into a folder, which is made if it is not there.

    Args:
        translator: What to write.
        folder: Path.
        weights: Boolean. `False` writes all but the model's weights: what a
            training can be resumed with.
    """
    folder.mkdir(parents=True, exist_ok=True)
    joint = translator.source_tokenizer is translator.target_tokenizer
    translator.source_tokenizer.save(folder / "source_tokenizer")
    if not joint:
        translator.target_tokenizer.save(folder / "target_tokenizer")
    config = {
        "task": "translation",
        "joint": joint,
        "model": keras.saving.serialize_keras_object(translator.model),
        "max_target_length": translator.max_target_length,
        "source_lengths": translator.source_lengths,
        "batch_sizes": translator.batch_sizes,
        "max_length_factor": translator.max_length_factor,
    }
    # What was there stays until the new file is whole.
    temporary = folder / f".new.{CONFIG_FILE}"
    temporary.write_text(json.dumps(config, indent=2), encoding="utf-8")
    temporary.replace(folder / CONFIG_FILE)
    if weights:
        temporary = folder / f".new.{MODEL_FILE}"
        translator.model.save(temporary)
        temporary.replace(folder / MODEL_FILE)


def load_parts(folder: Path, weights: bool = True) -> dict[str, Any]:
    """Read what `save_translator` wrote, as the arguments of `Translator`.

    Args:
        folder: Path.
        weights: Boolean. `False` makes the model anew.

    Raises:
        ValueError: If the folder is not one of a translator, or has no weights.
    """
    config = read_config(folder)
    if not weights:
        model = keras.saving.deserialize_keras_object(config["model"])
    elif not (folder / MODEL_FILE).is_file():
        raise ValueError(
            f"The training in {folder} has not finished: there is no "
            f"{MODEL_FILE}. Finish it with `keras-tfm train --resume`."
        )
    else:
        model = _load_model(folder / MODEL_FILE)
    source = target = load_tokenizer(folder / "source_tokenizer")
    if not config["joint"]:
        target = load_tokenizer(folder / "target_tokenizer")
    return {
        "model": model,
        "source_tokenizer": source,
        "target_tokenizer": target,
        "max_target_length": config["max_target_length"],
        "source_lengths": config["source_lengths"],
        "batch_sizes": config["batch_sizes"],
        # Folders of an older version have none.
        "max_length_factor": config.get("max_length_factor"),
    }


def _load_model(path: Path) -> keras.Model:
    try:
        return keras.saving.load_model(path, compile=False)
    except Exception as error:  # Whatever a broken archive makes Keras raise.
        raise ValueError(
            f"{path} is not a model of this version, or is damaged: {error} "
            "Train or save the model again."
        ) from error


def read_config(folder: Path) -> dict[str, Any]:
    """Read the settings of a translator's folder.

    Raises:
        ValueError: If the folder is not one of a translator.
    """
    path = folder / CONFIG_FILE
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config["task"] != "translation":
            raise KeyError(config["task"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{folder} is not the folder of a translator: {CONFIG_FILE} is "
            "missing or unreadable. Give the folder that `keras-tfm train` or "
            "`Translator.save` wrote."
        ) from error
    return config

"""A translator in the formats of other programs: CTranslate2, LiteRT, ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keras_tfm.export.ctranslate2 import write_ctranslate2
from keras_tfm.export.litert import write_litert
from keras_tfm.export.onnx import write_onnx
from keras_tfm.generation.generator import Generator
from keras_tfm.tasks.serving import id_function

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator


def export_ctranslate2(
    translator: Translator,
    folder: str | Path,
    quantization: str | None = None,
) -> None:
    """Write a translator as a folder that `ctranslate2.Translator` loads.

    It is the caller who chooses the search, at every call.

    Args:
        translator: The translator. The longest of its `source_lengths` and its
            `max_target_length` are what the folder is made for.
        folder: Path, see `write_ctranslate2`.
        quantization: See `write_ctranslate2`. Defaults to `None`: float32.

    Raises:
        ImportError: If `ctranslate2` is missing.
        ValueError: If the format cannot carry the translator.
    """
    write_ctranslate2(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        folder,
        max_source_length=translator.source_lengths[-1],
        max_target_length=translator.max_target_length,
        quantization=quantization,
    )


def export_litert(
    translator: Translator,
    path: str | Path,
    generator: Generator | None = None,
    batch_size: int | None = None,
    source_length: int | None = None,
) -> None:
    """Write a translator's decoder, from ids to ids, as a `.tflite` file.

    Args:
        translator: The translator. Its tokenizers stay outside.
        path: Path, see `write_litert`.
        generator: What chooses the tokens. Defaults to `translator.generator`.
        batch_size: See `write_litert`. Defaults to `None`: any.
        source_length: See `write_litert`. Defaults to `None`: any.

    Raises:
        ImportError: If `ai-edge-litert` is missing.
        RuntimeError: If Keras does not run on TensorFlow.
        ValueError: If the format cannot carry what the generator does.
    """
    write = id_function(translator, "translate", generator, drop_rows=False)
    write_litert(write, path, batch_size, source_length)


def export_onnx(
    translator: Translator,
    path: str | Path,
    generator: Generator | None = None,
    batch_size: int | None = None,
    source_length: int | None = None,
) -> None:
    """Write a translator's decoder, from ids to ids, as an `.onnx` file.

    Args:
        translator: The translator. Its tokenizers stay outside.
        path: Path, see `write_onnx`.
        generator: What chooses the tokens. Defaults to `translator.generator`.
        batch_size: See `write_onnx`. Defaults to `None`: any.
        source_length: See `write_onnx`. Defaults to `None`: any.

    Raises:
        ImportError: If `tf2onnx`, `onnx` or `onnxruntime` is missing.
        RuntimeError: If Keras does not run on TensorFlow.
        ValueError: If the format cannot carry what the generator does.
    """
    write = id_function(translator, "translate", generator, drop_rows=False)
    write_onnx(write, path, batch_size, source_length)

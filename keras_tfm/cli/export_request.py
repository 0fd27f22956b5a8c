"""What `keras-tfm export` is asked to write, and what does not go together."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_tfm.cli.search_options import SearchOptions

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator


class FormatName(StrEnum):
    """What a translator is written as."""

    saved_model = "saved_model"
    ctranslate2 = "ctranslate2"
    litert = "litert"
    onnx = "onnx"


class TokenizerOps(StrEnum):
    """Whose operations cut text into tokens in a SavedModel."""

    tf_text = "tf_text"
    core = "core"


class Quantization(StrEnum):
    """What weights are stored in; a SavedModel takes int8 alone."""

    int8 = "int8"
    int8_float32 = "int8_float32"
    int8_float16 = "int8_float16"
    int8_bfloat16 = "int8_bfloat16"
    int16 = "int16"
    float16 = "float16"
    bfloat16 = "bfloat16"
    float32 = "float32"


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What a format is called, and how one that is there is known."""

    title: str
    # The file by which a folder is known, or the end of a file's name.
    marker: str | None = None
    suffix: str | None = None


_KINDS = {
    FormatName.saved_model: _Kind("SavedModel", marker="saved_model.pb"),
    FormatName.ctranslate2: _Kind("CTranslate2 model", marker="model.bin"),
    FormatName.litert: _Kind("LiteRT file", suffix=".tflite"),
    FormatName.onnx: _Kind("ONNX file", suffix=".onnx"),
}


@dataclasses.dataclass(frozen=True)
class ExportRequest:
    """What to write.

    Attributes:
        format: `FormatName`.
        jit: Boolean. Whether XLA compiles a SavedModel; `None` is `True`.
        tokenizer_ops: `TokenizerOps` of a SavedModel; `None` is `tf_text`.
        quantization: `Quantization` of a SavedModel or of CTranslate2, or
            `None` for float32.
        search: `SearchOptions`, how the decoder that is written chooses.
    """

    format: FormatName = FormatName.saved_model
    jit: bool | None = None
    tokenizer_ops: TokenizerOps | None = None
    quantization: Quantization | None = None
    search: SearchOptions = dataclasses.field(default_factory=SearchOptions)

    @classmethod
    def from_options(cls, **options: Any) -> ExportRequest:
        """Make one of options that fit together.

        Raises:
            ValueError: If one of them is of another format.
        """
        request = cls(**options)
        request.check()
        return request

    @property
    def title(self) -> str:
        """What is written, for messages."""
        return _KINDS[self.format].title

    def check(self) -> None:
        """Raise `ValueError` if an option is of another format."""
        own = {
            "jit": FormatName.saved_model,
            "tokenizer_ops": FormatName.saved_model,
        }
        for name, owner in own.items():
            value = getattr(self, name)
            if value is not None and self.format != owner:
                option = f"--{name.replace('_', '-')} {value}"
                if name == "jit":
                    option = "--jit" if value else "--no-jit"
                raise ValueError(
                    f"{option} is for --format {owner}. Received: --format "
                    f"{self.format}."
                )
        self._check_quantization()
        given = self.search.given()
        if given and self.format == FormatName.ctranslate2:
            raise ValueError(
                f"{given[0]} has no place in --format ctranslate2: whoever "
                "calls the model chooses the search, with arguments of "
                "`translate_batch` such as beam_size=4. Leave it out."
            )
        if "--nbest" in given and self.format != FormatName.saved_model:
            raise ValueError(
                f"--nbest has no place in --format {self.format}, which gives "
                "the best translation alone. Leave it out, or take --format "
                "saved_model."
            )

    def _check_quantization(self) -> None:
        if self.quantization is None or self.format == FormatName.ctranslate2:
            return
        if self.format != FormatName.saved_model:
            raise ValueError(
                f"--quantization {self.quantization} is for --format "
                f"saved_model or ctranslate2. Received: --format {self.format}."
            )
        if self.quantization != Quantization.int8:
            raise ValueError(
                "--format saved_model takes --quantization int8 alone. "
                f"Received: --quantization {self.quantization}."
            )

    def check_output(self, output: Path, overwrite: bool) -> None:
        """Raise `ValueError` if what is there must not be replaced.

        Args:
            output: Path.
            overwrite: Boolean. Whether an older export of the same format may
                be replaced.
        """
        kind = _KINDS[self.format]
        if kind.suffix is None:
            self._check_folder(output, overwrite)
            return
        if output.suffix != kind.suffix:
            raise ValueError(
                f"--output must end with {kind.suffix} for --format "
                f"{self.format}. Received: {output}."
            )
        if output.is_dir():
            raise ValueError(f"{output} is a folder; give a file.")
        if output.exists() and not overwrite:
            raise ValueError(
                f"{output} is there already; give another file, or --overwrite."
            )

    def write(self, translator: Translator, path: Path) -> None:
        """Write it to a path at which nothing is yet.

        Args:
            translator: What to write. Its own generator is written, unless
                the options name another search.
            path: Path.
        """
        if self.format == FormatName.saved_model:
            self._write_saved_model(translator, path)
            return
        from keras_tfm.tasks.export_formats import export_ctranslate2
        from keras_tfm.tasks.export_formats import export_litert
        from keras_tfm.tasks.export_formats import export_onnx

        if self.format == FormatName.ctranslate2:
            export_ctranslate2(translator, path, self.quantization)
            return
        if self.search.given():
            self.search.apply(translator)
        write = {
            FormatName.litert: export_litert,
            FormatName.onnx: export_onnx,
        }[self.format]
        write(translator, path)

    def _write_saved_model(self, translator: Translator, path: Path) -> None:
        if self.search.given():
            # A SavedModel has room for all that a search finds.
            dataclasses.replace(
                self.search, nbest=self.search.nbest or self.search.beams
            ).apply(translator)
        translator.export(
            path,
            jit_compile=self.jit is not False,
            tokenizer_ops=self.tokenizer_ops or TokenizerOps.tf_text,
            quantization=self.quantization,
        )

    def _check_folder(self, output: Path, overwrite: bool) -> None:
        kind = _KINDS[self.format]
        if not output.exists():
            return
        if not output.is_dir():
            raise ValueError(f"{output} is a file; give a folder.")
        if not any(output.iterdir()):
            return
        if not (output / str(kind.marker)).is_file():
            raise ValueError(
                f"{output} holds something else than a {kind.title}; give "
                "another folder."
            )
        if not overwrite:
            raise ValueError(
                f"{output} holds a {kind.title} already; give another folder, "
                "or --overwrite."
            )


# What is written where nothing else is asked for.
SAVED_MODEL = ExportRequest()

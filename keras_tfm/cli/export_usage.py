"""What is told after an export: what it takes, and the lines that call it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keras_tfm.cli.export_request import SAVED_MODEL
from keras_tfm.cli.export_request import ExportRequest
from keras_tfm.cli.export_request import FormatName
from keras_tfm.cli.export_request import TokenizerOps

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator
    from keras_tfm.text.tokenizer import Tokenizer


def signatures(
    translator: Translator, request: ExportRequest = SAVED_MODEL
) -> list[str]:
    """Return a line on each thing that can be called.

    Args:
        translator: What was written.
        request: As what.
    """
    if request.format == FormatName.ctranslate2:
        return [
            "translate_batch: lists of pieces -> results with lists of pieces",
            "sources of at most "
            f"{translator.source_lengths[-1]} tokens with their end",
        ]
    if request.format != FormatName.saved_model:
        return [
            "ids, int32 (batch, source length) -> target_ids, int32 (batch, "
            f"{translator.max_target_length}); scores, float32 (batch,)",
            "a row of ids: the tokens of a text, then the end 2, then padding "
            "0",
        ]
    hypotheses = getattr(translator.generator, "num_hypotheses", 1)
    size = translator.model.arguments["hidden_dim"]
    return [
        "serving_default and translate: text, strings (batch,) -> "
        "text, strings (batch,); score, float32 (batch,)",
        "translate_nbest: text, strings (batch,) -> "
        f"text, strings (batch, {hypotheses}); "
        f"score, float32 (batch, {hypotheses})",
        "score: source and target, strings (batch,) -> "
        "score, float32 (batch,); tokens, int32 (batch,)",
        f"encode: text, strings (batch,) -> vector, float32 (batch, {size})",
        "warmup: compiles everything -> programs, int32",
    ]


def needed_packages(
    translator: Translator, request: ExportRequest = SAVED_MODEL
) -> str:
    """Return what a program needs, for a sentence."""
    pieces = any(map(_is_subword, _tokenizers(translator)))
    if request.format == FormatName.saved_model:
        more = needs_tensorflow_text(translator, request)
        return "TensorFlow and TensorFlow Text" if more else "TensorFlow"
    name = {
        FormatName.ctranslate2: "CTranslate2",
        FormatName.litert: "LiteRT",
        FormatName.onnx: "ONNX Runtime",
    }[request.format]
    return f"{name} and SentencePiece" if pieces else name


def usage(
    translator: Translator,
    output: Path,
    request: ExportRequest = SAVED_MODEL,
    folder: Path = Path("FOLDER"),
) -> list[str]:
    """Return the lines of Python that load and call what was written.

    Args:
        translator: What was written.
        output: Path of it.
        request: As what.
        folder: Path of the translator, where its tokenizers are.
    """
    if request.format == FormatName.saved_model:
        more = needs_tensorflow_text(translator, request)
        return [
            f"import tensorflow as tf{', tensorflow_text' if more else ''}",
            f'model = tf.saved_model.load("{output}")',
            'model.signatures["serving_default"](text=tf.constant(["..."]))',
        ]
    if request.format == FormatName.ctranslate2:
        return _ctranslate2_usage(translator, output)
    call = _litert_call if request.format == FormatName.litert else _onnx_call
    return _ids_usage(translator, folder, call(output))


def needs_tensorflow_text(
    translator: Translator, request: ExportRequest = SAVED_MODEL
) -> bool:
    """Whether a SavedModel needs the ops of `tensorflow_text`."""
    from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer

    return request.tokenizer_ops != TokenizerOps.core and any(
        isinstance(tokenizer, SentencePieceTokenizer)
        for tokenizer in _tokenizers(translator)
    )


def _tokenizers(translator: Translator) -> tuple[Tokenizer, Tokenizer]:
    return translator.source_tokenizer, translator.target_tokenizer


def _is_subword(tokenizer: Tokenizer) -> bool:
    # Those that stand on a SentencePiece model; the others have characters.
    return hasattr(tokenizer, "model_proto")


def _ctranslate2_usage(translator: Translator, output: Path) -> list[str]:
    source, target = _tokenizers(translator)
    imports, lines = ["import ctranslate2"], []
    if _is_subword(source) or _is_subword(target):
        imports.append("import sentencepiece as spm")
    pieces, text = 'list("...")', '"".join(pieces)'
    if _is_subword(source):
        lines.append(_spm_line("source", output / "source.spm"))
        pieces = 'source.encode("...", out_type=str)'
    if _is_subword(target):
        lines.append(_spm_line("target", output / "target.spm"))
        text = "target.decode(pieces)"
    return [
        *imports,
        f'translator = ctranslate2.Translator("{output}")',
        *lines,
        "[result] = translator.translate_batch(",
        f"    [{pieces}],",
        "    beam_size=1,",
        f"    max_input_length={translator.source_lengths[-1]},",
        f"    max_decoding_length={translator.max_target_length},",
        ")",
        "[pieces] = result.hypotheses",
        text,
    ]


def _ids_usage(
    translator: Translator, folder: Path, call: tuple[str, list[str]]
) -> list[str]:
    """Return the lines around the call of a function from ids to ids."""
    source, target = _tokenizers(translator)
    read, write = "source", "target"
    files = {side: folder / f"{side}_tokenizer" for side in (read, write)}
    tokenizers = {read: source, write: target}
    if source is target:
        read = write = "tokenizer"
        files, tokenizers = {read: files["source"]}, {read: source}
    imports = ["import numpy as np"]
    lines = []
    for name, tokenizer in tokenizers.items():
        path = files[name] / tokenizer.file_name
        if _is_subword(tokenizer):
            imports.append("import sentencepiece as spm")
            lines.append(_spm_line(name, path))
        else:
            imports.append("import json")
            lines.append(
                f'{name} = json.load(open("{path}", encoding="utf-8"))'
                '["characters"]'
            )
    ids = f'[{read}.index(c) + 4 if c in {read} else 3 for c in "..."] + [2]'
    if _is_subword(source):
        ids = f'{read}.encode("...") + [2]'
    text = f'"".join({write}[i - 4] for i in target_ids if i > 3)'
    if _is_subword(target):
        text = f"{write}.decode([int(i) for i in target_ids])"
    import_runtime, run = call
    return [
        *sorted({*imports, import_runtime}, key=_import_order),
        *lines,
        f'ids = np.array([{ids}], "int32")',
        *run,
        text,
    ]


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line


def _spm_line(name: str, path: Path) -> str:
    return f'{name} = spm.SentencePieceProcessor("{path}")'


def _litert_call(output: Path) -> tuple[str, list[str]]:
    return "from ai_edge_litert.interpreter import Interpreter", [
        f'run = Interpreter("{output}").get_signature_runner()',
        '[target_ids] = run(ids=ids)["target_ids"]',
    ]


def _onnx_call(output: Path) -> tuple[str, list[str]]:
    return "import onnxruntime", [
        f'session = onnxruntime.InferenceSession("{output}")',
        '[[target_ids]] = session.run(["target_ids"], {"ids": ids})',
    ]

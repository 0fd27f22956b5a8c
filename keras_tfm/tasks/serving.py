"""A translator as functions of ids, and as a module that is saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras
import tensorflow as tf

from keras_tfm.checks import check_choice
from keras_tfm.export.int8_weights import Int8Weights
from keras_tfm.export.text_to_text import SIGNATURES
from keras_tfm.export.text_to_text import TextToText
from keras_tfm.generation.generator import Generator
from keras_tfm.tasks.decoding import make_encoder
from keras_tfm.tasks.decoding import make_scorer
from keras_tfm.tasks.decoding import make_writer
from keras_tfm.text.byte_pair_tokenizer import BytePairTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator

TOKENIZER_OPS = ("tf_text", "core")
QUANTIZATIONS = (None, "int8")


def id_function(
    translator: Translator,
    name: str,
    generator: Generator | None = None,
    drop_rows: bool = True,
) -> Callable[..., Any]:
    """Make one of a translator's functions of ids, not compiled.

    Args:
        translator: The translator.
        name: A key of `keras_tfm.export.text_to_text.SIGNATURES`.
        generator: What `translate` and `translate_nbest` choose tokens with.
            Defaults to the translator's own.
        drop_rows: See `make_writer`. Defaults to `True`.
    """
    model, pad_id = translator.model, translator.source_tokenizer.pad_id
    if name == "score":
        return make_scorer(model, translator.target_tokenizer.start_id, pad_id)
    if name == "encode":
        return make_encoder(model, pad_id)
    return make_writer(
        model,
        generator or translator.generator,
        pad_id,
        translator.max_length_factor,
        n_best=name == "translate_nbest",
        drop_rows=drop_rows,
    )


def make_text_to_text(
    translator: Translator,
    generator: Generator | None = None,
    jit_compile: bool = True,
    tokenizer_ops: str = "tf_text",
    quantization: str | None = None,
) -> TextToText:
    """Make the TensorFlow module that `Translator.export` writes.

    Args:
        translator: The translator.
        generator: See `Translator.export`.
        jit_compile: See `Translator.export`.
        tokenizer_ops: See `Translator.export`.
        quantization: See `Translator.export`.

    Raises:
        RuntimeError: If Keras does not run on TensorFlow.
        ValueError: If `tokenizer_ops` or `quantization` is unknown.
    """
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "A SavedModel is made by TensorFlow. Keras runs on "
            f"{keras.backend.backend()}: save the translator and export it "
            "in a process with KERAS_BACKEND=tensorflow."
        )
    check_choice("tokenizer_ops", tokenizer_ops, TOKENIZER_OPS)
    check_choice("quantization", quantization, QUANTIZATIONS)
    source, target = translator.source_tokenizer, translator.target_tokenizer
    if tokenizer_ops == "core":
        joint = source is target
        source = _of_core_operations(source)
        target = source if joint else _of_core_operations(target)
    functions = {
        name: id_function(translator, name, generator) for name in SIGNATURES
    }
    variables = [variable.value for variable in translator.model.variables]
    if quantization == "int8":
        weights = Int8Weights(translator.model.variables)
        variables = weights.saved_variables
        functions = {
            name: weights.within(function)
            for name, function in functions.items()
        }
    return TextToText(
        source,
        target,
        functions,
        variables,
        translator.source_lengths,
        translator.batch_sizes,
        jit_compile,
    )


def export_saved_model(module: TextToText, folder: str | Path) -> None:
    """Write a module as a SavedModel with all its signatures."""
    tf.saved_model.save(module, str(folder), signatures=module.signatures())


def _of_core_operations(tokenizer: Tokenizer) -> Tokenizer:
    if isinstance(tokenizer, SentencePieceTokenizer):
        return BytePairTokenizer.from_sentencepiece(tokenizer)
    return tokenizer

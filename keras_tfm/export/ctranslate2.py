"""A Transformer and its tokenizers as a folder for the package `ctranslate2`.

Shape letters: E hidden_dim, L positions, V vocabulary.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import numpy as np

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive_int
from keras_tfm.export.ctranslate2_format import check_parts
from keras_tfm.export.ctranslate2_format import find_activation
from keras_tfm.export.ctranslate2_format import make_vocabularies
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.ops.positions import sinusoids
from keras_tfm.text.tokenizer import Tokenizer

QUANTIZATIONS = (
    None,
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "int16",
    "float16",
    "bfloat16",
    "float32",
)

# How far CTranslate2 decodes where its caller names no length.
_DEFAULT_TARGET_LENGTH = 256


def write_ctranslate2(
    model: Transformer,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    folder: str | Path,
    max_source_length: int,
    max_target_length: int,
    quantization: str | None = None,
) -> None:
    """Write a model as a folder that `ctranslate2.Translator` loads.

    CTranslate2 runs it without TensorFlow, in float32 or fewer bits. It takes
    lists of pieces, adds the end of a source itself, and gives back pieces
    without the end. Where a tokenizer stands on a SentencePiece model, the
    folder also holds that model as `source.spm` or `target.spm`, and two small
    packages translate:

    ```python
    import ctranslate2, sentencepiece

    translator = ctranslate2.Translator(folder)
    source = sentencepiece.SentencePieceProcessor(f"{folder}/source.spm")
    target = sentencepiece.SentencePieceProcessor(f"{folder}/target.spm")
    results = translator.translate_batch(
        source.encode(["A dog runs."], out_type=str),
        beam_size=1,
        max_input_length=max_source_length,
        max_decoding_length=max_target_length,
    )
    target.decode(results[0].hypotheses[0])
    ```

    With a `CharacterTokenizer` the pieces are the characters of the text.

    What CTranslate2 does otherwise than we do:

    - A source of more than `max_source_length` tokens is a `RuntimeError`, for
      the whole batch. Its own limit is 1024, so pass `max_input_length`, as
      above; a longer source is cut then, and keeps its end.
    - A target has room for 256 tokens, its own limit, or `max_target_length`
      if that is more. Pass `max_decoding_length` to end where we do.
    - It writes at least one token. `min_decoding_length=0` gives our results.
    - It divides a score by the number of tokens. `length_penalty=0` gives the
      sum of the log-probabilities.
    - It may write `<pad>`, which our decoders never do. A trained model has no
      use for it; `suppress_sequences=[["<pad>"]]` forbids it.

    Args:
        model: Transformer. Weights of fewer bits are written as float32.
        source_tokenizer: Tokenizer of the texts that come in.
        target_tokenizer: Tokenizer of the texts that go out.
        folder: Path. It is made; one that is there must be empty.
        max_source_length: Positive integer, in tokens with the end.
        max_target_length: Positive integer, in tokens with the end.
        quantization: What the weights are stored in, one of `QUANTIZATIONS`
            such as `"int8"`, or `None` for float32. `"bfloat16"` and
            `"int8_bfloat16"` need `torch`. Defaults to `None`.

    Raises:
        ImportError: If `ctranslate2` is missing.
        TypeError: If the model is no `Transformer`.
        ValueError: If the folder holds something, an argument is out of range,
            the tokenizers do not fit, or the format cannot carry the model:
            an activation, an attention or a feed-forward layer of another kind,
            a head size other than `hidden_dim / num_heads`, weights of
            integers.

    Example:
        >>> import ctranslate2, tempfile
        >>> from keras_tfm.text.character_tokenizer import CharacterTokenizer
        >>> tokenizer = CharacterTokenizer("abc")
        >>> model = Transformer(
        ...     7, num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=2
        ... )
        >>> folder = Path(tempfile.mkdtemp(), "model")
        >>> write_ctranslate2(model, tokenizer, tokenizer, folder, 11, 11)
        >>> translator = ctranslate2.Translator(str(folder))
        >>> [scores] = translator.score_batch([list("abba")], [list("cab")])
        >>> scores.tokens
        ['c', 'a', 'b', '</s>']
    """
    specs = _import_specs()
    folder = Path(folder)
    _check_empty(folder)
    check_choice("quantization", quantization, QUANTIZATIONS)
    check_positive_int("max_source_length", max_source_length)
    check_positive_int("max_target_length", max_target_length)
    check_parts(model)
    tokenizers = {"source": source_tokenizer, "target": target_tokenizer}
    vocabularies = make_vocabularies(model, tokenizers)
    spec = _make_spec(specs, model)
    _fill(spec, model)
    # Without a table CTranslate2 computes one that begins at position 1.
    for side, num_positions in (
        (spec.encoder, max_source_length),
        (spec.decoder, max(max_target_length, _DEFAULT_TARGET_LENGTH)),
    ):
        side.position_encodings.encodings = _positions(model, num_positions)
    spec.register_source_vocabulary(vocabularies["source"])
    spec.register_target_vocabulary(vocabularies["target"])
    _configure(spec.config, model, vocabularies["target"])
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    for side, tokenizer in tokenizers.items():
        model_proto = getattr(tokenizer, "model_proto", None)
        if model_proto is not None:
            (folder / f"{side}.spm").write_bytes(model_proto)


def _make_spec(specs: ModuleType, model: Transformer) -> Any:
    return specs.TransformerSpec.from_config(
        num_layers=(len(model.encoder.blocks), len(model.decoder.blocks)),
        num_heads=model.arguments["num_heads"],
        pre_norm=model.arguments["normalize_first"],
        activation=specs.common_spec.Activation[find_activation(model)],
    )


def _configure(config: Any, model: Transformer, target: list[str]) -> None:
    config.layer_norm_epsilon = model.arguments["layer_norm_epsilon"]
    config.unk_token = target[Tokenizer.unknown_id]
    config.bos_token = target[Tokenizer.start_id]
    config.eos_token = target[Tokenizer.end_id]
    config.decoder_start_token = target[Tokenizer.start_id]
    # Our sources end with the end and begin with their first token.
    config.add_source_bos = False
    config.add_source_eos = True


def _fill(spec: Any, model: Transformer) -> None:
    _fill_stack(spec.encoder, model.encoder)
    _fill_stack(spec.decoder, model.decoder)
    [source] = spec.encoder.embeddings
    target = spec.decoder.embeddings
    source.weight = _array(model.source_embedding.embeddings)
    target.weight = _array(model.target_embedding.embeddings)
    spec.encoder.scale_embeddings = model.source_embedding.scale
    spec.decoder.scale_embeddings = model.target_embedding.scale
    # Equal arrays are stored once.
    spec.decoder.projection.weight = (
        _array(model.target_embedding.embeddings)
        if model.project is None
        else _array(model.project.kernel).T  # (V, E)
    )


def _positions(model: Transformer, num_positions: int) -> np.ndarray:
    table = sinusoids(
        np.arange(num_positions),
        model.arguments["hidden_dim"],
        model.position.layout,
        model.position.denominator,
        model.position.max_wavelength,
    )
    return np.array(keras.ops.convert_to_numpy(table))  # (L, E)


def _fill_stack(spec: Any, stack: keras.layers.Layer) -> None:
    for layer, block in zip(spec.layer, stack.blocks, strict=True):
        own = block.self_attention
        _fill_norm(layer.self_attention.layer_norm, own.norm)
        _fill_linear(
            layer.self_attention.linear,
            [own.sublayer.query_key_value],
            [own.sublayer.attention_output],
        )
        if hasattr(layer, "attention"):
            cross = block.cross_attention
            _fill_norm(layer.attention.layer_norm, cross.norm)
            _fill_linear(
                layer.attention.linear,
                [cross.sublayer.query],
                [cross.sublayer.key, cross.sublayer.value],
                [cross.sublayer.attention_output],
            )
        _fill_norm(layer.ffn.layer_norm, block.feed_forward.norm)
        _fill_linear(
            [layer.ffn.linear_0, layer.ffn.linear_1],
            [block.feed_forward.sublayer.widen],
            [block.feed_forward.sublayer.project],
        )
    if stack.norm is not None:
        _fill_norm(spec.layer_norm, stack.norm)


def _fill_norm(spec: Any, norm: keras.layers.LayerNormalization) -> None:
    spec.gamma = _array(norm.gamma)
    spec.beta = _array(norm.beta)


def _fill_linear(specs: Any, *products: list[keras.layers.Dense]) -> None:
    # Each product is that of one or more layers side by side.
    for spec, layers in zip(specs, products, strict=True):
        kernels = [_array(layer.kernel).T for layer in layers]
        spec.weight = np.concatenate(kernels)  # (outputs, inputs)
        if layers[0].use_bias:
            spec.bias = np.concatenate([_array(layer.bias) for layer in layers])


def _array(weight: keras.Variable) -> np.ndarray:
    dtype = keras.backend.standardize_dtype(weight.dtype)
    if "float" not in dtype:
        raise ValueError(
            f"`{weight.path}` holds {dtype}: the model was quantized. Export "
            "the model as it was before, with `quantization` here."
        )
    # A copy: the quantization of CTranslate2 works in place.
    return np.array(keras.ops.convert_to_numpy(weight), "float32")


def _check_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder.")
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(
            f"{folder} holds something already; give a new folder, or an "
            "empty one."
        )


def _import_specs() -> ModuleType:
    try:
        import ctranslate2.specs
    except ImportError as error:
        raise ImportError(
            "This export needs the package `ctranslate2`. "
            "Run: pip install 'keras_tfm[export]'"
        ) from error
    return ctranslate2.specs

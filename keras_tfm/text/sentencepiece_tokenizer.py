"""Subwords by SentencePiece: byte-pair encoding that can spell every text."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import ClassVar

import tensorflow as tf

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive_int
from keras_tfm.text.tokenizer import Tokenizer
from keras_tfm.text.tokenizer import as_dense_ids
from keras_tfm.text.tokenizer import as_string_tensor
from keras_tfm.text.tokenizer import check_texts

_LOGGER = logging.getLogger(__name__)
_NUM_BYTE_PIECES = 256
_NORMALIZATIONS = ("nmt_nfkc", "identity")


class SentencePieceTokenizer(Tokenizer):
    """Cut text into subwords with a SentencePiece model, in Python or a graph.

    The model is byte-pair encoding with byte fallback: a character that is
    not in the vocabulary is spelled in its UTF-8 bytes, so that every text
    survives the way to ids and back (after the model's normalization).
    `tokenize` and `detokenize` run `tensorflow_text` ops, whose ids equal
    those of the `sentencepiece` package. A SavedModel that holds them needs
    `import tensorflow_text` before it is loaded.

    Args:
        model_proto: Bytes. A trained SentencePiece model whose pad, start,
            end and unknown ids are 0, 1, 2 and 3, as `train` makes it.

    Raises:
        ValueError: If the bytes are no such model.
        ImportError: If `tensorflow-text` or `sentencepiece` is missing.

    Example:
        >>> texts = ["a cat sat on a mat", "a dog ate a cat"] * 3
        >>> tokenizer = SentencePieceTokenizer.train(texts, 290)
        >>> tokenizer.vocabulary_size
        290
        >>> ids = tokenizer.tokenize(["a cat", "猫"])
        >>> tokenizer.pieces(ids.to_list()[1])
        ['▁', '<0xE7>', '<0x8C>', '<0xAB>']
        >>> [text.decode() for text in tokenizer.detokenize(ids).numpy()]
        ['a cat', '猫']
    """

    file_name: ClassVar[str] = "sentencepiece.model"

    def __init__(self, model_proto: bytes) -> None:
        super().__init__(name="sentencepiece_tokenizer")
        self._processor = _checked_processor(model_proto)
        self.model_proto = bytes(model_proto)
        # An attribute, so that its resource is tracked and saved.
        self._in_graph = _import_tensorflow_text().SentencepieceTokenizer(
            model=self.model_proto, out_type=tf.int32
        )
        self._in_graph._model_resource = _SharedModel(self.model_proto)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int,
        character_coverage: float = 0.9995,
        normalization: str = "nmt_nfkc",
    ) -> SentencePieceTokenizer:
        """Learn the subwords of `texts`, in memory; equal input, equal model.

        A text too small for `vocabulary_size` pieces gives fewer (a warning
        is logged): read `vocabulary_size` of the result, not the number asked
        for.

        Args:
            texts: Iterable of strings, one sentence each.
            vocabulary_size: Positive integer. Number of ids, which holds 4
                special ones, 256 bytes and the characters of the texts.
            character_coverage: Float in (0, 1]. Share of the text whose
                characters get their own piece; the rare rest is spelled in
                bytes. Defaults to `0.9995`.
            normalization: `"nmt_nfkc"` (Unicode NFKC, white space collapsed)
                or `"identity"` (only leading spaces are lost). Defaults to
                `"nmt_nfkc"`.

        Returns:
            A `SentencePieceTokenizer`.

        Raises:
            ValueError: If the texts are empty, or the vocabulary is too small
                for the bytes and characters.
        """
        check_texts(texts)
        check_positive_int("vocabulary_size", vocabulary_size)
        check_choice("normalization", normalization, _NORMALIZATIONS)
        if not 0 < character_coverage <= 1:
            raise ValueError(
                "`character_coverage` must be a number in (0, 1]. "
                f"Received: character_coverage={character_coverage!r}."
            )
        smallest = len(cls.special_pieces) + _NUM_BYTE_PIECES + 1
        if vocabulary_size < smallest:
            raise ValueError(
                f"`vocabulary_size` must be at least {smallest}: 4 special "
                "ids, 256 bytes, and the characters of the texts. "
                f"Received: vocabulary_size={vocabulary_size}."
            )
        tokenizer = cls(
            _train_model(
                texts,
                vocab_size=vocabulary_size,
                character_coverage=character_coverage,
                normalization_rule_name=normalization,
                remove_extra_whitespaces=normalization != "identity",
                pad_id=cls.pad_id,
                bos_id=cls.start_id,
                eos_id=cls.end_id,
                unk_id=cls.unknown_id,
            )
        )
        if tokenizer.vocabulary_size < vocabulary_size:
            _LOGGER.warning(
                "The texts hold only %d pieces; %d were asked for.",
                tokenizer.vocabulary_size,
                vocabulary_size,
            )
        return tokenizer

    @property
    def vocabulary_size(self) -> int:
        return self._processor.get_piece_size()

    def tokenize(self, texts: Sequence[str] | tf.Tensor) -> tf.RaggedTensor:
        return self._in_graph.tokenize(as_string_tensor(texts))

    def detokenize(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        dense = as_dense_ids(ids, self.vocabulary_size)
        return self._in_graph.detokenize(dense)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        size = self.vocabulary_size
        return [
            self._processor.id_to_piece(
                int(i) if 0 <= i < size else self.unknown_id
            )
            for i in ids
        ]

    def save(self, folder: str | Path) -> Path:
        return self._write_file(folder, self.model_proto)

    @classmethod
    def load(cls, folder: str | Path) -> SentencePieceTokenizer:
        return cls(cls._read_file(folder))


class _SharedModel(tf.saved_model.experimental.TrackableResource):
    """The model inside the runtime, which outlives the kernel that made it.

    The resource that `tensorflow_text` makes belongs to a cached kernel:
    `keras.utils.set_random_seed` and `clear_session` empty that cache, and
    every later call fails (tensorflow/text issue 570). One with a shared name
    stays. The name is that of the content, so that models never mix.
    """

    def __init__(self, model_proto: bytes) -> None:
        super().__init__()
        self._model_proto = model_proto
        digest = hashlib.sha256(model_proto).hexdigest()
        self._shared_name = f"keras_tfm_sentencepiece_{digest}"
        _ = self.resource_handle  # The access makes the resource.

    def _create_resource(self) -> tf.Tensor:
        from tensorflow_text.python.ops import sentencepiece_tokenizer

        ops = sentencepiece_tokenizer.gen_sentencepiece_tokenizer
        return ops.sentencepiece_op(
            model=self._model_proto, shared_name=self._shared_name
        )


def _train_model(texts: Iterable[str], **options: Any) -> bytes:
    model = io.BytesIO()
    try:
        _import_sentencepiece().SentencePieceTrainer.train(
            sentence_iterator=(_clean(text) for text in texts),
            model_writer=model,
            model_type="bpe",
            byte_fallback=True,
            # Ask for at most this many pieces: small texts hold fewer.
            hard_vocab_limit=False,
            # The default of 4192 bytes would skip long lines in silence.
            max_sentence_length=2**30,
            minloglevel=2,
            **options,
        )
    except RuntimeError as error:
        message = str(error)
        if "sentences_.empty()" in message:
            raise ValueError(
                "`texts` holds no text to train on. "
                "Give at least one text that is not empty."
            ) from error
        if "smaller than required_chars" in message:
            needed = message.split(" vs ")[1].split(".")[0]
            raise ValueError(
                f"`vocabulary_size` must be at least {needed} for these texts "
                "(4 special ids, 256 bytes and their characters). Received: "
                f"vocabulary_size={options['vocab_size']}. Raise it, or lower "
                f"`character_coverage` ({options['character_coverage']})."
            ) from error
        raise
    return model.getvalue()


def _clean(text: str) -> str:
    # SentencePiece takes no lone surrogates.
    return text.encode("utf-8", "replace").decode("utf-8")


def _checked_processor(model_proto: bytes) -> Any:
    sentencepiece = _import_sentencepiece()
    if not isinstance(model_proto, (bytes, bytearray)) or not model_proto:
        raise ValueError(
            "`model_proto` must be the bytes of a SentencePiece model. "
            f"Received: {type(model_proto).__name__} of length "
            f"{len(model_proto)}."
        )
    try:
        processor = sentencepiece.SentencePieceProcessor(
            model_proto=bytes(model_proto)
        )
    except RuntimeError as error:
        raise ValueError(
            "`model_proto` must be the bytes of a SentencePiece model. "
            f"Received {len(model_proto)} bytes that are none."
        ) from error
    found = (
        processor.pad_id(),
        processor.bos_id(),
        processor.eos_id(),
        processor.unk_id(),
    )
    expected = (
        Tokenizer.pad_id,
        Tokenizer.start_id,
        Tokenizer.end_id,
        Tokenizer.unknown_id,
    )
    if found != expected:
        raise ValueError(
            f"The model's pad, start, end and unknown ids must be {expected}. "
            f"Received: {found}. Train it with `SentencePieceTokenizer.train`."
        )
    return processor


def _import_sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise ImportError(
            "SentencePieceTokenizer needs the package `sentencepiece`. "
            "Run: pip install 'keras_tfm[text]'"
        ) from error
    return sentencepiece


def _import_tensorflow_text() -> Any:
    try:
        import tensorflow_text
    except ImportError as error:
        raise ImportError(
            "SentencePieceTokenizer needs the package `tensorflow-text`. "
            "Run: pip install 'keras_tfm[text]'"
        ) from error
    return tensorflow_text

"""The reading of a model file against the sentencepiece package."""

import io

import pytest
import sentencepiece

from keras_tfm.text.sentencepiece_model import PieceType
from keras_tfm.text.sentencepiece_model import SentencePieceModel


def train(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a cat sat", "the dog 猫"] * 5),
        model_writer=model,
        vocab_size=300,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def test_pieces_scores_and_types_are_those_of_sentencepiece():
    proto = train(model_type="bpe", byte_fallback=True)
    model = SentencePieceModel.parse(proto)
    package = sentencepiece.SentencePieceProcessor(model_proto=proto)
    ids = range(package.get_piece_size())
    assert list(model.pieces) == package.id_to_piece(list(ids))
    assert list(model.scores) == package.get_score(list(ids))
    for kind, asked in (
        (PieceType.BYTE, package.is_byte),
        (PieceType.CONTROL, package.is_control),
        (PieceType.UNKNOWN, package.is_unknown),
    ):
        assert [t == kind for t in model.types] == asked(list(ids))


def test_the_settings_are_those_of_the_training():
    model = SentencePieceModel.parse(
        train(
            model_type="bpe",
            byte_fallback=True,
            unk_surface="?!",
            treat_whitespace_as_suffix=True,
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            normalization_rule_name="identity",
        )
    )
    assert (model.model_type, model.unknown_surface) == (2, "?!")
    assert model.byte_fallback
    assert model.whitespace_as_suffix
    assert not model.add_dummy_prefix
    assert not model.remove_extra_whitespaces
    assert model.charsmap == b""


def test_the_defaults_are_those_of_sentencepiece():
    model = SentencePieceModel.parse(train())
    assert (model.model_type, model.unknown_surface) == (1, " ⁇ ")
    assert not model.byte_fallback
    assert not model.whitespace_as_suffix
    assert model.add_dummy_prefix
    assert model.remove_extra_whitespaces
    assert model.escape_whitespaces
    assert not model.has_denormalizer
    assert len(model.charsmap) > 100_000


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (b"", "Received 0 bytes that are none"),
        (b"no model at all", "Received 15 bytes that are none"),
        # A piece without a name, and one whose name is a number.
        (b"\x0a\x00", "Received 2 bytes that are none"),
        (b"\x0a\x02\x08\x01", "Received 4 bytes that are none"),
        ("a string", "Received 'a string' of type str"),
        (train()[:-7], "bytes that are none"),
    ],
)
def test_bytes_that_are_no_model_are_an_error(model, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceModel.parse(model)

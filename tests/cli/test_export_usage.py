"""What is told after an export fits the tokenizers and the format.

That the lines run is tested with the export.
"""

from pathlib import Path

import pytest

from keras_tfm.cli.export_request import ExportRequest
from keras_tfm.cli.export_request import FormatName
from keras_tfm.cli.export_request import TokenizerOps
from keras_tfm.cli.export_usage import needed_packages
from keras_tfm.cli.export_usage import needs_tensorflow_text
from keras_tfm.cli.export_usage import signatures
from keras_tfm.cli.export_usage import usage
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer

FORMATS = [ExportRequest(format=name) for name in FormatName]


class Made:
    """What the lines depend on."""

    source_lengths = (7, 13)
    max_target_length = 11

    def __init__(self, source, target=None):
        self.source_tokenizer = source
        self.target_tokenizer = source if target is None else target


@pytest.fixture(scope="module")
def subwords():
    texts = ["a cat sat on a mat", "a dog ate a cat"] * 3
    return SentencePieceTokenizer.train(texts, 290)


def program(translator, request):
    lines = usage(translator, Path("out"), request, Path("in"))
    compile("\n".join(lines), "usage", "exec")
    return "\n".join(lines)


def test_a_saved_model_needs_what_its_tokenizers_need(subwords):
    core = ExportRequest(tokenizer_ops=TokenizerOps.core)
    one, two = Made(subwords), Made(CharacterTokenizer("abc"))
    assert needs_tensorflow_text(one)
    assert needs_tensorflow_text(Made(two.source_tokenizer, subwords))
    assert not needs_tensorflow_text(one, core)
    assert not needs_tensorflow_text(two)
    first = "import tensorflow as tf\n"
    assert program(one, FORMATS[0]).startswith(f"{first[:-1]}, tensorflow_text")
    assert program(one, core).startswith(first)
    assert program(two, FORMATS[0]).startswith(first)
    assert needed_packages(one) == "TensorFlow and TensorFlow Text"
    assert needed_packages(one, core) == needed_packages(two) == "TensorFlow"


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (FORMATS[1], "CTranslate2"),
        (FORMATS[2], "LiteRT"),
        (FORMATS[3], "ONNX Runtime"),
    ],
)
def test_other_programs_need_sentencepiece_for_subwords_alone(
    request_, name, subwords
):
    characters = CharacterTokenizer("abc")
    both = Made(subwords)
    assert needed_packages(both, request_) == f"{name} and SentencePiece"
    assert "json" not in program(both, request_)
    one = Made(characters, subwords)
    assert needed_packages(one, request_) == f"{name} and SentencePiece"
    assert "target.decode" in program(one, request_)
    none = Made(characters)
    assert needed_packages(none, request_) == name
    assert "sentencepiece" not in program(none, request_)


@pytest.mark.parametrize("request_", FORMATS[2:])
def test_a_decoder_of_ids_reads_the_tokenizers_where_they_are(
    request_, subwords
):
    characters = CharacterTokenizer("abc")
    two = program(Made(subwords, characters), request_)
    assert "in/source_tokenizer/sentencepiece.model" in two
    assert "in/target_tokenizer/characters.json" in two
    # One for both sides lies with the source.
    one = program(Made(subwords), request_)
    assert "in/source_tokenizer/sentencepiece.model" in one
    assert "target_tokenizer" not in one


def test_the_lengths_are_told(subwords):
    translator = Made(subwords)
    for request_ in FORMATS[1:]:
        lines = "\n".join(signatures(translator, request_))
        assert ("13" if request_ is FORMATS[1] else "(batch, 11)") in lines
    lines = program(translator, FORMATS[1])
    assert "max_input_length=13,\n    max_decoding_length=11," in lines

"""A translator hands its parts and its lengths to the other formats."""

import keras
import pytest

from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.tasks import export_formats
from keras_tfm.tasks.export_formats import export_ctranslate2
from keras_tfm.tasks.export_formats import export_litert
from keras_tfm.tasks.export_formats import export_onnx
from keras_tfm.tasks.translation import Translator


@pytest.fixture(scope="module")
def translator():
    pairs = SentencePairs(["abcab", "cab"], ["ab", "ba"])
    return Translator.from_pairs(
        pairs,
        tokenizer="characters",
        joint=False,
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=12,
        num_heads=2,
        max_target_length=5,
        source_lengths=(3, 7),
    )


def test_ctranslate2_is_told_the_longest_source_and_target(
    translator, monkeypatch
):
    told = {}

    def write(model, source, target, folder, **arguments):
        told.update(arguments, parts=(model, source, target), folder=folder)

    monkeypatch.setattr(export_formats, "write_ctranslate2", write)
    export_ctranslate2(translator, "out", quantization="int8")
    assert told == {
        "parts": (
            translator.model,
            translator.source_tokenizer,
            translator.target_tokenizer,
        ),
        "folder": "out",
        "max_source_length": 7,
        "max_target_length": 5,
        "quantization": "int8",
    }


@pytest.mark.parametrize(
    ("name", "export"),
    [("write_litert", export_litert), ("write_onnx", export_onnx)],
)
def test_a_file_writes_what_the_translator_writes(
    name, export, translator, monkeypatch
):
    told = []
    monkeypatch.setattr(
        export_formats, name, lambda *arguments: told.append(arguments)
    )
    export(translator, "a", GreedyGenerator(3), batch_size=1, source_length=7)
    export(translator, "b")
    (write, *rest), (by_itself, *defaults) = told
    assert rest == ["a", 1, 7]
    assert defaults == ["b", None, None]
    ids = keras.ops.array([[4, 5, 6, 2, 0, 0, 0]])
    found, scores = write(ids)
    assert (found.shape, scores.shape) == ((1, 3), (1,))
    found, scores = by_itself(ids)
    assert (found.shape, scores.shape) == ((1, 5), (1,))

"""An export is refused before anything is loaded, with the reason."""

import pytest

from keras_tfm.cli.export_request import SAVED_MODEL
from keras_tfm.cli.export_request import ExportRequest
from keras_tfm.cli.export_request import FormatName
from keras_tfm.cli.export_request import Quantization
from keras_tfm.cli.export_request import TokenizerOps
from keras_tfm.cli.search_options import SearchOptions
from keras_tfm.export.ctranslate2 import QUANTIZATIONS
from keras_tfm.tasks.serving import TOKENIZER_OPS

MARKERS = {"saved_model": "saved_model.pb", "ctranslate2": "model.bin"}
SUFFIXES = {"litert": ".tflite", "onnx": ".onnx"}


def request(name, **options):
    return ExportRequest.from_options(format=FormatName(name), **options)


def test_the_choices_are_those_of_the_library():
    assert set(Quantization) == set(QUANTIZATIONS) - {None}
    assert set(TokenizerOps) == set(TOKENIZER_OPS)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("onnx", {"jit": True}, "--jit is for --format saved_model. Received"),
        ("litert", {"jit": False}, "--no-jit is for --format saved_model."),
        (
            "ctranslate2",
            {"tokenizer_ops": TokenizerOps.core},
            "--tokenizer-ops core is for --format saved_model. Received: "
            "--format ctranslate2.",
        ),
        (
            "saved_model",
            {"quantization": Quantization.int16},
            "--format saved_model takes --quantization int8 alone. Received: "
            "--quantization int16.",
        ),
        (
            "onnx",
            {"quantization": Quantization.int8},
            "--quantization int8 is for --format saved_model or ctranslate2. "
            "Received: --format onnx.",
        ),
        (
            "ctranslate2",
            {"search": SearchOptions(beams=4)},
            "--beams has no place in --format ctranslate2: whoever calls the "
            "model chooses the search, with arguments of `translate_batch`",
        ),
        (
            "litert",
            {"search": SearchOptions(beams=4, nbest=2)},
            "--nbest has no place in --format litert, which gives the best",
        ),
    ],
)
def test_an_option_of_another_format_is_refused(name, options, message):
    with pytest.raises(ValueError, match="--format") as error:
        request(name, **options)
    assert message in str(error.value)


@pytest.mark.parametrize("name", MARKERS)
def test_a_folder_of_the_same_format_is_replaced_when_asked(name, tmp_path):
    output = tmp_path / "model"
    output.mkdir()
    request(name).check_output(output, overwrite=False)
    (output / MARKERS[name]).write_text("old")
    with pytest.raises(ValueError, match="already; give another folder, or"):
        request(name).check_output(output, overwrite=False)
    request(name).check_output(output, overwrite=True)


@pytest.mark.parametrize("name", MARKERS)
def test_a_folder_of_something_else_is_never_replaced(name, tmp_path):
    [other] = set(MARKERS) - {name}
    (tmp_path / MARKERS[other]).write_text("mine")
    title = {
        "saved_model": "SavedModel",
        "ctranslate2": "CTranslate2 model",
    }[name]
    with pytest.raises(
        ValueError, match=f"holds something else than a {title}"
    ):
        request(name).check_output(tmp_path, overwrite=True)
    with pytest.raises(ValueError, match="is a file; give a folder"):
        request(name).check_output(tmp_path / MARKERS[other], overwrite=True)


@pytest.mark.parametrize("name", SUFFIXES)
def test_a_file_is_replaced_when_asked_and_only_one_of_its_name(name, tmp_path):
    output = tmp_path / f"model{SUFFIXES[name]}"
    request(name).check_output(output, overwrite=False)
    output.write_text("old")
    with pytest.raises(ValueError, match="is there already; give another file"):
        request(name).check_output(output, overwrite=False)
    request(name).check_output(output, overwrite=True)
    notes = tmp_path / "notes.txt"
    with pytest.raises(ValueError, match=r"--output must end with \.") as error:
        request(name).check_output(notes, overwrite=True)
    assert f"for --format {name}. Received: {notes}." in str(error.value)
    folder = tmp_path / f"folder{SUFFIXES[name]}"
    folder.mkdir()
    with pytest.raises(ValueError, match="is a folder; give a file"):
        request(name).check_output(folder, overwrite=True)


class Recorder:
    """A translator that notes what it is asked to write."""

    max_target_length = 5
    generator = "its own"

    def export(self, path, **arguments):
        self.written = (path, arguments)


def test_a_translator_keeps_a_search_of_its_own():
    translator = Recorder()
    SAVED_MODEL.write(translator, "x")
    assert translator.generator == "its own"
    assert translator.written == (
        "x",
        {
            "jit_compile": True,
            "tokenizer_ops": "tf_text",
            "quantization": None,
        },
    )


def test_a_saved_model_returns_as_many_hypotheses_as_there_are_beams():
    for nbest, expected in ((None, 3), (2, 2)):
        translator = Recorder()
        request(
            "saved_model",
            jit=False,
            tokenizer_ops=TokenizerOps.core,
            quantization=Quantization.int8,
            search=SearchOptions(beams=3, nbest=nbest),
        ).write(translator, "x")
        assert translator.generator.num_hypotheses == expected
        assert translator.written == (
            "x",
            {
                "jit_compile": False,
                "tokenizer_ops": "core",
                "quantization": "int8",
            },
        )

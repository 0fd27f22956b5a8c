"""A SavedModel answers in a process that has TensorFlow alone."""

import pytest

from keras_tfm.cli import saved_model_check
from keras_tfm.cli.export import write_saved_model
from keras_tfm.cli.saved_model_check import answers_in_new_process


@pytest.fixture(scope="module")
def saved_model(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports") / "saved_model"
    write_saved_model(translator, folder)
    return folder


def test_a_process_without_this_package_gives_the_same_strings(
    saved_model, translator, monkeypatch
):
    program = saved_model_check._PROGRAM + (
        "import sys\n"
        "if {'keras_tfm', 'tensorflow_text'} & set(sys.modules):\n"
        "    raise SystemExit('not TensorFlow alone')\n"
    )
    monkeypatch.setattr(saved_model_check, "_PROGRAM", program)
    texts = ["eins", "", "fünf", "acht"]
    answers = answers_in_new_process(saved_model, texts)
    assert answers == translator.translate(texts)


def test_a_folder_that_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(RuntimeError, match="cannot be used in a new") as error:
        answers_in_new_process(tmp_path, ["eins"])
    assert str(tmp_path) in str(error.value)

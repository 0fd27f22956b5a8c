"""A SavedModel is written whole, and replaces nothing unasked."""

import pytest
import tensorflow as tf

from keras_tfm.cli.export import check_replaceable
from keras_tfm.cli.export import needs_tensorflow_text
from keras_tfm.cli.export import usage
from keras_tfm.cli.export import write_saved_model
from keras_tfm.tasks.translation import Translator


def test_the_export_gives_what_the_translator_gives(
    run, refused, model_folder, translator, tmp_path
):
    output = tmp_path / "new" / "saved_model"
    arguments = ("export", "--folder", model_folder, "--output", output)
    code, printed, errors = run(*arguments, "--no-jit")
    assert (code, errors) == (0, "")
    assert "text, strings (batch,) -> text, strings (batch,)" in printed
    model = tf.saved_model.load(str(output))
    texts = ["eins", "zwei"]
    written = model.signatures["serving_default"](text=tf.constant(texts))
    answers = [text.decode() for text in written["text"].numpy()]
    assert answers == translator.translate(texts)
    assert [path.name for path in output.parent.iterdir()] == ["saved_model"]
    # And again.
    assert refused(*arguments) == (
        f"{output} holds a SavedModel already; give another folder, or "
        "--overwrite."
    )
    assert run(*arguments, "--no-jit", "--overwrite")[0] == 0
    assert [path.name for path in output.parent.iterdir()] == ["saved_model"]


def test_the_example_runs(translator, tmp_path):
    output = tmp_path / "saved_model"
    write_saved_model(translator, output, jit_compile=False)
    names = {}
    exec("\n".join(usage(translator, output)), names)
    assert "model" in names


def test_subwords_need_their_package():
    from keras_tfm.data.sentence_pairs import SentencePairs

    texts = ["a cat sat on a mat", "a dog ate a cat"] * 3
    subwords = Translator.from_pairs(
        SentencePairs(texts, texts),
        vocabulary_size=290,
        num_layers=1,
        hidden_dim=4,
        intermediate_dim=4,
        num_heads=1,
    )
    assert needs_tensorflow_text(subwords)
    assert "tensorflow_text" in usage(subwords, "x")[0]


def test_characters_need_none(translator):
    assert not needs_tensorflow_text(translator)
    assert usage(translator, "x")[0] == "import tensorflow as tf"


def test_an_export_that_fails_leaves_the_old_one(tmp_path):
    class Fails:
        def export(self, folder, jit_compile):
            folder.mkdir()
            raise RuntimeError("no space")

    output = tmp_path / "saved_model"
    output.mkdir()
    (output / "saved_model.pb").write_text("old")
    with pytest.raises(RuntimeError, match="no space"):
        write_saved_model(Fails(), output)
    assert [path.name for path in tmp_path.iterdir()] == ["saved_model"]
    assert (output / "saved_model.pb").read_text() == "old"


def test_what_is_no_saved_model_is_never_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something else"):
        check_replaceable(tmp_path, overwrite=True)
    with pytest.raises(ValueError, match="is a file; give a folder"):
        check_replaceable(tmp_path / "notes.txt", overwrite=True)
    (tmp_path / "empty").mkdir()
    check_replaceable(tmp_path / "empty", overwrite=False)
    check_replaceable(tmp_path / "new", overwrite=False)

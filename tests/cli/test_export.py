"""An export is written whole, replaces nothing unasked, and its lines run."""

import contextlib

import keras
import pytest

from keras_tfm.cli.export import check_replaceable
from keras_tfm.cli.export import write_saved_model
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.generation.beam_search import BeamSearchGenerator
from keras_tfm.generation.length_penalty import NoLengthPenalty
from keras_tfm.tasks import export_formats
from keras_tfm.tasks.translation import Translator


def called(printed, text):
    """Run the lines that were printed, on a text; return what the last is."""
    lines = [line[4:] for line in printed.splitlines() if line[:4] == "    "]
    assert '"..."' in printed
    *program, last = [line.replace("...", text) for line in lines]
    names = {}
    with contextlib.closing(Opened()) as opened:
        names["open"] = opened
        exec("\n".join(program), names)
        return eval(last, names), names


class Opened:
    """`open`, whose files are closed in the end."""

    def __init__(self):
        self.files = contextlib.ExitStack()

    def __call__(self, *args, **kwargs):
        return self.files.enter_context(open(*args, **kwargs))

    def close(self):
        self.files.close()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_lines_of_a_saved_model_give_what_the_translator_gives(
    run, refused, model_folder, translator, decoded, tmp_path
):
    output = tmp_path / "new" / "saved_model"
    arguments = ("export", "--folder", model_folder, "--output", output)
    code, printed, errors = run(
        *(*arguments, "--no-jit", "--beams", 3, "--nbest", 2),
        *("--penalty", "none"),
    )
    assert (code, errors) == (0, "")
    assert "text, strings (batch,) -> text, strings (batch,)" in printed
    found, names = called(printed, "eins")
    search = BeamSearchGenerator(5, 3, 2, NoLengthPenalty())
    [expected] = decoded(translator, ["eins"], search)
    [text], [score] = found["text"].numpy(), found["score"].numpy()
    assert text.decode() == expected[0][0]
    assert score == pytest.approx(expected[0][1], rel=1e-5)
    for name, function in names["model"].signatures.items():
        assert name in printed
        for size in function.structured_outputs.values():
            shape = ("batch", *size.shape[1:]) if size.shape.rank else ""
            assert not shape or f"({', '.join(map(str, shape))}" in printed
    text = names["tf"].constant(["eins"])
    nbest = names["model"].signatures["translate_nbest"](text=text)
    assert [text.decode() for text in nbest["text"].numpy()[0]] == [
        text for text, _ in expected
    ]
    assert names_in(output.parent) == ["saved_model"]
    # And again.
    assert refused(*arguments) == (
        f"{output} holds a SavedModel already; give another folder, or "
        "--overwrite."
    )


@pytest.mark.parametrize(
    ("name", "suffix"), [("litert", ".tflite"), ("onnx", ".onnx")]
)
def test_the_lines_of_a_decoder_of_ids_give_what_it_writes(
    name, suffix, run, model_folder, tmp_path, monkeypatch
):
    told = []

    def reversing(translator, name, generator, drop_rows):
        # These formats cannot carry batches that get smaller.
        assert not drop_rows
        # Quick to convert; true decoders are converted in tests/export.
        told.append((name, translator.generator, generator))
        return lambda ids: (ids[:, ::-1], 0.5 * keras.ops.ones(2))

    monkeypatch.setattr(export_formats, "id_function", reversing)
    output = tmp_path / f"model{suffix}"
    output.write_text("old")
    code, printed, errors = run(
        *("export", "--folder", model_folder, "--output", output),
        *("--format", name, "--beams", 3, "--overwrite"),
    )
    assert (code, errors) == (0, "")
    assert names_in(tmp_path) == [output.name]
    [(function, search, given)] = told
    assert (function, given) == ("translate", None)
    assert (search.num_beams, search.num_hypotheses) == (3, 1)
    # A character that is not known has no spelling.
    found, names = called(printed, "füqe")
    assert found == "eüf"
    assert names["ids"].shape == (1, 5)


def test_the_lines_of_ctranslate2_give_what_the_translator_gives(
    run, model_folder, translator, decoded, tmp_path
):
    output = tmp_path / "model"
    arguments = ("export", "--folder", model_folder, "--output", output)
    arguments = (*arguments, "--format", "ctranslate2")
    code, printed, errors = run(*arguments)
    assert (code, errors) == (0, "")
    [[(expected, _)]] = decoded(translator, ["eins"])
    assert called(printed, "eins")[0] == expected
    size = (output / "model.bin").stat().st_size
    code, _, _ = run(*arguments, "--quantization", "float16", "--overwrite")
    assert code == 0
    assert (output / "model.bin").stat().st_size < size
    assert names_in(tmp_path) == ["model"]


def test_the_lines_with_subwords_run_too(run, decoded, tmp_path):
    texts = ["a cat sat on a mat", "a dog ate a cat"] * 3
    subwords = Translator.from_pairs(
        SentencePairs(texts, texts),
        vocabulary_size=290,
        num_layers=1,
        hidden_dim=4,
        intermediate_dim=4,
        num_heads=1,
        max_target_length=5,
        source_lengths=(16,),
    )
    subwords.save(tmp_path / "in")
    code, printed, _ = run(
        *("export", "--folder", tmp_path / "in"),
        *("--output", tmp_path / "out", "--format", "ctranslate2"),
    )
    assert code == 0
    [[(expected, _)]] = decoded(subwords, ["a cat"])
    assert called(printed, "a cat")[0] == expected


def test_an_export_that_fails_leaves_the_old_one(tmp_path):
    class Fails:
        def export(self, folder, **arguments):
            folder.mkdir()
            raise RuntimeError("no space")

    output = tmp_path / "saved_model"
    output.mkdir()
    (output / "saved_model.pb").write_text("old")
    with pytest.raises(RuntimeError, match="no space"):
        write_saved_model(Fails(), output)
    assert names_in(tmp_path) == ["saved_model"]
    assert (output / "saved_model.pb").read_text() == "old"


def test_a_new_export_replaces_the_old_one_whole(tmp_path):
    class Writes:
        def export(self, folder, **arguments):
            folder.mkdir()
            (folder / "saved_model.pb").write_text("new")

    output = tmp_path / "saved_model"
    output.mkdir()
    for name in ("saved_model.pb", "rest"):
        (output / name).write_text("old")
    write_saved_model(Writes(), output)
    assert names_in(tmp_path) == ["saved_model"]
    assert names_in(output) == ["saved_model.pb"]
    assert (output / "saved_model.pb").read_text() == "new"


def test_what_is_no_saved_model_is_never_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something else"):
        check_replaceable(tmp_path, overwrite=True)
    with pytest.raises(ValueError, match="is a file; give a folder"):
        check_replaceable(tmp_path / "notes.txt", overwrite=True)
    (tmp_path / "empty").mkdir()
    check_replaceable(tmp_path / "empty", overwrite=False)
    check_replaceable(tmp_path / "new", overwrite=False)

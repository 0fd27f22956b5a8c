"""LiteRT runs the exported decoder: the same tokens, the same scores."""

import sys

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from export.small_decoders import GENERATORS
from export.small_decoders import reverse
from export.small_decoders import sources
from export.small_decoders import writer
from export.small_decoders import written

from keras_tfm.export.litert import write_litert


def loaded(path):
    return Interpreter(str(path)).get_signature_runner()


@pytest.mark.slow
@pytest.mark.parametrize("kind", GENERATORS)
def test_it_writes_what_tensorflow_writes_for_any_batch_and_length(
    kind, tmp_path
):
    path = tmp_path / "new" / "decoder.tflite"
    write_litert(writer(kind), path)
    run = loaded(path)
    for ids, target_ids, scores in written(kind):
        found = run(ids=ids)
        np.testing.assert_array_equal(found["target_ids"], target_ids)
        np.testing.assert_allclose(found["scores"], scores, atol=1e-4)


def test_the_names_are_those_of_its_documentation(tmp_path):
    write_litert(reverse, tmp_path / "file", batch_size=2, source_length=5)
    interpreter = Interpreter(str(tmp_path / "file"))
    assert interpreter.get_signature_list() == {
        "serving_default": {
            "inputs": ["ids"],
            "outputs": ["scores", "target_ids"],
        }
    }


def test_given_sizes_are_the_only_ones_that_the_file_takes(tmp_path):
    write_litert(reverse, tmp_path / "fixed", batch_size=2, source_length=5)
    [details] = Interpreter(str(tmp_path / "fixed")).get_input_details()
    assert details["shape_signature"].tolist() == [2, 5]
    write_litert(reverse, tmp_path / "free", source_length=5)
    [details] = Interpreter(str(tmp_path / "free")).get_input_details()
    assert details["shape_signature"].tolist() == [-1, 5]


def test_the_weights_are_in_the_file(tmp_path):
    weight = tf.Variable([1.0, 2.0, 3.0])

    def write(ids):
        index = tf.constant(0)
        score = tf.zeros(tf.shape(ids)[0])
        # A loop that reads a variable, as a decoder does.
        _, score = tf.while_loop(
            lambda index, score: index < 3,
            lambda index, score: (index + 1, score + weight[index]),
            (index, score),
            shape_invariants=(index.shape, tf.TensorShape([None])),
        )
        return ids, score

    write_litert(write, tmp_path / "file")
    weight.assign([0.0, 0.0, 0.0])
    found = loaded(tmp_path / "file")(ids=sources(2, 3))
    assert found["scores"].tolist() == [6.0, 6.0]


def test_an_operation_that_the_format_lacks_is_named(tmp_path):
    def write(ids):
        return ids, tf.linalg.logdet(tf.cast(ids, tf.float32)[None])

    with pytest.raises(
        ValueError,
        match="LiteRT cannot carry this: it has no Cholesky, "
        r"MatrixDiagPartV3\. Leave out the part .* Or export a SavedModel",
    ):
        write_litert(write, tmp_path / "new" / "file", 3, 3)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (
            "bfloat16",
            "no bfloat16, and the model has. Make the model with dtyp",
        ),
        ("float16", "no float16, and the model has. Make the model with dtype"),
        ("int8", "no int8, and the model has. Export the model as it was"),
    ],
)
def test_a_model_of_fewer_bits_is_refused(dtype, message, tmp_path):
    weight = tf.Variable(tf.ones((), dtype))

    def write(ids):
        scores = weight * tf.cast(ids[:, 0], dtype)
        return ids, tf.cast(scores, tf.float32)

    with pytest.raises(ValueError, match=message):
        write_litert(write, tmp_path / "file")


def test_what_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        ValueError, match=r"file is there already. Give another"
    ):
        write_litert(reverse, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_missing_package_is_named_with_the_way_to_get_it(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(
        ImportError,
        match=r"needs the package `ai-edge-litert`. Run: pip install "
        r"'keras_tfm\[export\]'",
    ):
        write_litert(reverse, tmp_path / "file")

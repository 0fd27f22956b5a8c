"""ONNX Runtime runs the exported decoder: the same tokens, the same scores."""

import logging
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf
from export.small_decoders import GENERATORS
from export.small_decoders import reverse
from export.small_decoders import writer
from export.small_decoders import written
from keras import ops

from keras_tfm.export.onnx import write_onnx

NAMES = ["target_ids", "scores"]


def loaded(path):
    session = onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )
    return lambda ids: session.run(NAMES, {"ids": ids})


@pytest.mark.slow
@pytest.mark.parametrize("kind", GENERATORS)
def test_it_writes_what_tensorflow_writes_for_any_batch_and_length(
    kind, tmp_path
):
    path = tmp_path / "new" / "decoder.onnx"
    write_onnx(writer(kind), path)
    onnx.checker.check_model(path, full_check=True)
    run = loaded(path)
    for ids, target_ids, scores in written(kind):
        found_ids, found_scores = run(ids)
        np.testing.assert_array_equal(found_ids, target_ids)
        np.testing.assert_allclose(found_scores, scores, atol=1e-4)


def test_the_names_and_sizes_are_those_of_its_documentation(tmp_path):
    write_onnx(reverse, tmp_path / "free")
    session = onnxruntime.InferenceSession(tmp_path / "free")
    [ids] = session.get_inputs()
    assert (ids.name, ids.shape) == ("ids", ["batch", "source_length"])
    outputs = {output.name: output for output in session.get_outputs()}
    assert outputs.keys() == {*NAMES}
    assert outputs["scores"].shape == ["batch"]

    write_onnx(reverse, tmp_path / "fixed", batch_size=2, source_length=5)
    [ids] = onnxruntime.InferenceSession(tmp_path / "fixed").get_inputs()
    assert ids.shape == [2, 5]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ([0, 0], [[8, 9, 3], [4, 5, 6]]),
        ([1, 1], [[1, 2, 3], [4, 8, 9]]),
        # Past the end it is moved back, as XLA does.
        ([5, 5], [[1, 2, 3], [4, 8, 9]]),
        ([-3, 0], [[8, 9, 3], [4, 5, 6]]),
    ],
)
def test_a_slice_is_updated_at_any_place(start, expected, tmp_path):
    def write(ids):
        # The last row says where, and the update is of an unknown width.
        update = tf.constant([[8, 9]])[:, : tf.size(ids) // 3]
        updated = ops.slice_update(ids[:2], ids[2, :2], update)
        return updated, tf.ones(2)

    write_onnx(write, tmp_path / "file", batch_size=3)
    ids = np.array([[1, 2, 3], [4, 5, 6], [*start, 0]], "int32")
    found, _ = loaded(tmp_path / "file")(ids)
    assert found.tolist() == expected


def test_an_operation_that_the_format_lacks_is_named(tmp_path, caplog):
    def write(ids):
        return ids, tf.linalg.logdet(tf.cast(ids, tf.float32)[None])

    with pytest.raises(
        ValueError,
        match=r"ONNX cannot carry this: it has no Cholesky\. Leave out the "
        r"part .* Or export a SavedModel",
    ):
        write_onnx(write, tmp_path / "new" / "file", 3, 3)
    assert not (tmp_path / "new").exists()
    # The error says it all, and the log is left as it was.
    assert not caplog.records
    assert logging.getLogger("tf2onnx").level == logging.NOTSET


def test_a_file_that_computes_something_else_is_refused(tmp_path):
    def write(ids):
        # Beyond 32 bits: TensorFlow wraps around, ONNX Runtime stops there.
        large = tf.reduce_sum(ids + 2**30, axis=1)
        return ids, tf.cast(large, tf.float32)

    with pytest.raises(
        ValueError, match=r"computes something else, a score of 214.* and not -"
    ):
        write_onnx(write, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_model_of_bfloat16_is_refused_and_one_of_float16_is_not(tmp_path):
    def writer(dtype):
        weight = tf.Variable(tf.ones((), dtype))

        def write(ids):
            scores = weight * tf.cast(ids[:, 0], dtype)
            return ids, tf.cast(scores, tf.float32)

        return write

    with pytest.raises(
        ValueError, match=r"ONNX .* has no bfloat16, and the mod"
    ):
        write_onnx(writer("bfloat16"), tmp_path / "file")
    write_onnx(writer("float16"), tmp_path / "file")
    _, scores = loaded(tmp_path / "file")(np.array([[5, 3]], "int32"))
    assert scores.tolist() == [5.0]


def test_what_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        ValueError, match=r"file is there already. Give another"
    ):
        write_onnx(reverse, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "tf2onnx"])
def test_a_missing_package_is_named_with_the_way_to_get_it(
    package, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError,
        match=rf"`{package}` is missing. Run: pip install "
        r"'keras_tfm\[export\]'",
    ):
        write_onnx(reverse, tmp_path / "file")

"""A decoder's graph has its names, and a converted one is checked."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.export.ids_to_ids import check_results
from keras_tfm.export.ids_to_ids import trace_writer


def double(ids):
    return 2 * ids, tf.cast(ids[:, 0], tf.float32)


def test_inputs_and_outputs_have_their_names():
    traced = trace_writer(double)
    found = traced(ids=tf.constant([[5, 3]]))
    assert found.keys() == {"target_ids", "scores"}
    assert found["target_ids"].numpy().tolist() == [[10, 6]]


@pytest.mark.parametrize("name", ["batch_size", "source_length"])
def test_a_size_must_be_positive(name):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of"):
        trace_writer(double, **{name: 0})


def test_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(
        RuntimeError, match=r"runs on jax: .*KERAS_BACKEND=tens"
    ):
        trace_writer(double)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), [[3, 3, 3], [3, 3, 0]]),
        ((1, 2), [[3, 3]]),
        ((3, 2), [[3, 3], [3, 0], [3, 3]]),
    ],
)
def test_it_is_checked_on_rows_of_real_tokens_of_the_given_sizes(
    sizes, expected
):
    seen = []

    def run(ids):
        seen.append(ids.tolist())
        return {"scores": np.full(len(ids), 3.0)}

    check_results("X", trace_writer(double, *sizes), run)
    assert seen == [expected]


def test_other_scores_are_an_error():
    with pytest.raises(
        ValueError,
        match=r"^X cannot carry this: .* a score of 4\.000 and not 3\.000\. ",
    ):
        check_results(
            "X", trace_writer(double), lambda ids: {"scores": np.array([4, 3])}
        )


def test_scores_that_are_no_numbers_are_an_error():
    with pytest.raises(ValueError, match="a score of nan and not"):
        check_results(
            "X",
            trace_writer(double),
            lambda ids: {"scores": np.nan * ids[:, 0]},
        )


def test_a_file_that_fails_is_an_error_with_its_first_line():
    def run(ids):
        raise OSError("No kernel.\nMore of it")

    with pytest.raises(
        ValueError, match=r"does not run \(No kernel\)\. Or export a SavedM"
    ):
        check_results("X", trace_writer(double), run)

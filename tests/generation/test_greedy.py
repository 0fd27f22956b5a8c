"""Greedy decoding of a Transformer against full passes without a cache."""

import functools

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from keras import ops
from models.transformer.made import V_TARGET
from models.transformer.made import batch
from models.transformer.made import fresh
from models.transformer.made import logits

from keras_tfm.generation import GreedyGenerator
from keras_tfm.generation import NextTokens

# With this end one row of the three ends early and the others do not.
START, END = 1, 6
LENGTH = 11


def array(tensor):
    return ops.convert_to_numpy(tensor)


@functools.cache
def model():
    return fresh(num_layers=1)


# Padding is no word: a trained model never writes it, a random one would.
NO_PADDING = np.where(np.arange(V_TARGET) == 0, -1e4, 0.0).astype("float32")


def step(last, cache, index):
    scores, cache = model().step(last, cache, index)
    return scores + NO_PADDING, cache


def sources():
    return batch()[0]


@functools.cache
def compiled_loop(max_length):
    model()  # Made now, not while the loop is traced.
    generator = GreedyGenerator(max_length, START, END)
    return compiled(
        lambda source: generator(
            step,
            model().initial_cache(source, max_length),
            ops.any(source != 0, axis=1),
        )
    )


def decode(source, max_length=LENGTH):
    """Decode with a compiled loop."""
    run = compiled_loop(max_length)
    ids, scores = run(ops.convert_to_tensor(source, "int32"))
    return array(ids), array(scores)


def without_cache(source, max_length=LENGTH, prefix=None):
    """Decode with a full pass for each position, rows cut in NumPy."""
    if prefix is None:
        prefix = np.zeros((len(source), max_length), "int32")
    rows = len(source)
    written = np.zeros((rows, max_length), "int32")
    scores, ended = np.zeros(rows), np.zeros(rows, bool)
    for index in range(max_length):
        fed = np.zeros((rows, max_length), "int32")
        fed[:, 0] = START
        fed[:, 1 : index + 1] = written[:, :index]
        row = logits(model(), source, fed)[:, index] + NO_PADDING
        row = row.astype("float64")
        row -= np.log(np.exp(row).sum(-1, keepdims=True))
        for r in np.flatnonzero(~ended):
            token = prefix[r, index] or row[r].argmax()
            written[r, index] = token
            scores[r] += row[r, token]
            ended[r] = written[r, index] == END
    return written, scores


def test_greedy_is_the_argmax_of_a_full_pass_at_every_position():
    source = sources()
    ids, scores = decode(source)
    expected, expected_scores = without_cache(source)
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-4)
    ended = (ids == END).any(axis=1)
    assert ended.any()
    assert not ended.all()


def test_scores_are_the_log_probabilities_of_teacher_forcing():
    source = sources()
    ids, scores = decode(source)
    fed = np.concatenate([np.full((len(ids), 1), START), ids[:, :-1]], axis=1)
    forced = logits(model(), source, fed) + NO_PADDING
    forced = forced - np.log(np.exp(forced).sum(-1, keepdims=True))
    each = np.take_along_axis(forced, ids[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(
        scores, (each * (ids != 0)).sum(axis=1), atol=1e-4
    )


def test_a_row_does_not_depend_on_the_others():
    source = sources()
    ids, scores = decode(source)
    for row in (0, 1):
        alone, score = decode(source[row : row + 1])
        np.testing.assert_array_equal(alone[0], ids[row])
        np.testing.assert_allclose(score[0], scores[row], atol=1e-4)


def test_source_padding_changes_nothing():
    source = sources()
    ids, scores = decode(source)
    more_ids, more_scores = decode(np.pad(source, ((0, 0), (0, 6))))
    np.testing.assert_array_equal(more_ids, ids)
    np.testing.assert_allclose(more_scores, scores, atol=1e-4)


def test_the_longest_length_changes_nothing_before_it():
    source = sources()
    short, _ = decode(source, 16)
    long, _ = decode(source, 64)
    np.testing.assert_array_equal(long[:, :16], short)
    for row in range(len(source)):
        if (short[row] == END).any():
            assert (long[row, 16:] == 0).all()


def test_a_compiled_loop_writes_what_a_loop_in_python_does():
    source = sources()
    generator = GreedyGenerator(5, START, END)
    cache = model().initial_cache(source, 5)
    eager, eager_scores = generator(step, cache, source.any(axis=1))
    ids, scores = decode(source, 5)
    np.testing.assert_array_equal(ids, array(eager))
    np.testing.assert_allclose(scores, array(eager_scores), atol=1e-4)


def test_empty_rows_of_a_padded_batch_stay_empty():
    source = sources()
    ids, scores = decode(source)
    padded, padded_scores = decode(np.pad(source, ((0, 2), (0, 0))))
    np.testing.assert_array_equal(padded[:3], ids)
    np.testing.assert_allclose(padded_scores[:3], scores, atol=1e-4)
    assert (padded[3:] == 0).all()
    assert (padded_scores[3:] == 0.0).all()


def test_a_prefix_is_as_if_the_model_had_written_it():
    source = sources()
    prefix = np.array([[3, 7, 2, 9], [0, 0, 0, 0], [5, 5, 0, 0]], "int32")
    generator = GreedyGenerator(LENGTH, START, END)

    def run(source, prefix):
        cache = model().initial_cache(source, LENGTH)
        active = np.ones(len(source), bool)
        return generator(step, cache, active, prefix=prefix)

    ids, scores = swift(run)(
        ops.convert_to_tensor(source), ops.convert_to_tensor(prefix)
    )
    wanted = np.pad(prefix, ((0, 0), (0, LENGTH - 4)))
    expected, expected_scores = without_cache(source, prefix=wanted)
    np.testing.assert_array_equal(array(ids), expected)
    np.testing.assert_allclose(array(scores), expected_scores, atol=1e-4)
    # What follows depends on it.
    free, _ = decode(source)
    assert (array(ids)[0, 4:] != free[0, 4:]).any()


def test_one_program_serves_every_batch_size_and_length():
    source = sources()
    expected, _ = decode(source)

    def run(source):
        generator = GreedyGenerator(LENGTH, START, END)
        cache = model().initial_cache(source, LENGTH)
        return generator(step, cache, ops.any(source != 0, axis=1))[0]

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        run = tf.function(
            run,
            input_signature=[tf.TensorSpec((None, None), tf.int32)],
            jit_compile=True,
            autograph=False,
        )
    else:
        run = compiled(run)
    for rows in (slice(0, 3), slice(0, 2)):
        found = run(ops.convert_to_tensor(source[rows], "int32"))
        np.testing.assert_array_equal(array(found), expected[rows])


@pytest.mark.parametrize(
    ("scores", "token"),
    [([1.0, 5.0, 5.0], 1), ([3.0] * 3, 0), ([-1.0, -2.0, -0.5], 2)],
)
def test_of_equals_the_lowest_id_is_taken(scores, token):
    next_tokens = NextTokens(ops.convert_to_tensor([[scores]]))
    found = GreedyGenerator(1).next_token(next_tokens, 0, seeds=None)
    assert array(found).tolist() == [[token]]

"""The decoding loop: when it stops, what it returns, how often it is traced."""

import contextlib

import keras
import numpy as np
import pytest
from backend_functions import compiled
from keras import ops

from keras_tfm.generation import Generator
from keras_tfm.generation import GreedyGenerator

# A vocabulary of 7: 0 pads, 1 starts, 2 ends.
V = 7


def array(tensor):
    return ops.convert_to_numpy(tensor)


def writer(*texts):
    """Make a step function that writes each row's text, and its cache.

    The cache holds, for each row and position, the token to write; it is what
    a model would know of the source. Scores fall with the distance to it.
    """
    width = max(len(text) for text in texts)
    table = np.full((len(texts), width), 3)
    for row, text in enumerate(texts):
        table[row, : len(text)] = text

    def step(last, cache, index):
        place = ops.minimum(index, width - 1)
        wanted = ops.take(cache, place, axis=1)
        logits = -ops.abs(ops.arange(V) - ops.expand_dims(wanted, -1))
        return ops.expand_dims(ops.cast(logits, "float32"), 1), cache

    return step, ops.convert_to_tensor(table, "int32")


def log_probability(token):
    """Return the log-probability that `writer` gives to what it writes."""
    return -np.log(np.exp(-np.abs(np.arange(V) - token)).sum())


@contextlib.contextmanager
def op_by_op():
    """Run loops in Python, so that the calls of a step can be counted."""
    if keras.backend.backend() == "jax":
        import jax

        with jax.disable_jit():
            yield
    else:
        yield


def all_active(rows):
    return np.ones(rows, bool)


def test_each_row_is_its_tokens_the_end_and_padding():
    step, cache = writer([5, 4, 2], [2], [6, 6, 6, 6, 2])
    ids, _ = GreedyGenerator(6)(step, cache, all_active(3))
    assert array(ids).tolist() == [
        [5, 4, 2, 0, 0, 0],
        [2, 0, 0, 0, 0, 0],
        [6, 6, 6, 6, 2, 0],
    ]
    assert keras.backend.standardize_dtype(ids.dtype) == "int32"


def test_a_score_sums_the_tokens_of_its_row_the_end_included():
    step, cache = writer([5, 4, 2], [2], [6, 6, 6, 6, 6, 6, 6])
    _, scores = GreedyGenerator(6)(step, cache, all_active(3))
    expected = [
        sum(map(log_probability, text)) for text in ([5, 4, 2], [2], [6] * 6)
    ]
    np.testing.assert_allclose(array(scores), expected, rtol=1e-5)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"


@pytest.mark.parametrize("max_length", [1, 2, 5])
def test_no_row_is_longer_than_allowed(max_length):
    step, cache = writer([5, 5, 5, 5, 5, 5, 5])
    ids, _ = GreedyGenerator(max_length)(step, cache, all_active(1))
    assert array(ids).tolist() == [[5] * max_length]


@pytest.mark.parametrize(
    ("texts", "calls"),
    [(([5, 4, 2], [2]), 3), (([2], [2]), 1), (([5] * 20, [2]), 16)],
)
def test_the_loop_stops_when_every_row_has_ended(texts, calls):
    step, cache = writer(*texts)
    seen = []

    def counted(last, cache, index):
        seen.append(int(index))
        return step(last, cache, index)

    with op_by_op():
        GreedyGenerator(16)(counted, cache, all_active(2))
    assert seen == list(range(calls))


def test_a_step_reads_the_start_and_then_what_was_written():
    step, cache = writer([5, 4, 2], [6, 2])
    read = []

    def watched(last, cache, index):
        read.append(array(last).tolist())
        return step(last, cache, index)

    with op_by_op():
        GreedyGenerator(8, start_id=1)(watched, cache, all_active(2))
    # The second row has ended when the third token is written.
    assert read == [[[1], [1]], [[5], [6]], [[4], [2]]]


def test_rows_that_are_not_active_stay_empty():
    step, cache = writer([5, 4, 2], [6, 6, 2], [5, 2])
    active = np.array([True, False, True])
    ids, scores = GreedyGenerator(4)(step, cache, active)
    assert array(ids).tolist() == [[5, 4, 2, 0], [0] * 4, [5, 2, 0, 0]]
    assert array(scores)[1] == 0.0
    assert (array(scores)[[0, 2]] < 0).all()


def test_without_an_active_row_nothing_runs():
    step, cache = writer([5, 4, 2], [6, 6, 2])
    calls = []

    def counted(last, cache, index):
        calls.append(index)
        return step(last, cache, index)

    with op_by_op():
        ids, scores = GreedyGenerator(4)(counted, cache, [False, False])
    assert not calls
    assert (array(ids) == 0).all()
    assert (array(scores) == 0.0).all()


def test_ids_of_start_end_and_padding_can_be_chosen():
    step, cache = writer([5, 4, 6, 3])
    generator = GreedyGenerator(5, start_id=3, end_id=6, pad_id=1)
    ids, _ = generator(step, cache, all_active(1))
    assert array(ids).tolist() == [[5, 4, 6, 1, 1]]


def test_what_an_ended_row_computes_changes_nothing():
    step, cache = writer([2], [5, 4, 2])

    def broken(last, cache, index):
        logits, cache = step(last, cache, index)
        ended = ops.equal(ops.expand_dims(last, -1), 0)
        return ops.where(ended, np.nan, logits), cache

    ids, scores = GreedyGenerator(5)(broken, cache, all_active(2))
    assert array(ids).tolist() == [[2, 0, 0, 0, 0], [5, 4, 2, 0, 0]]
    np.testing.assert_allclose(array(scores)[0], log_probability(2), rtol=1e-5)


def test_two_calls_of_one_shape_are_traced_once():
    step, cache = writer([5, 4, 2], [6, 2])
    traces = []

    def traced(last, cache, index):
        traces.append(index)
        return step(last, cache, index)

    generator = GreedyGenerator(5)
    run = compiled(lambda cache, active: generator(traced, cache, active))
    first, _ = run(cache, ops.convert_to_tensor([True, True]))
    after_one = len(traces)
    second, _ = run(cache + 1, ops.convert_to_tensor([True, False]))
    assert len(traces) == after_one >= 1
    assert array(first).tolist() == [[5, 4, 2, 0, 0], [6, 2, 0, 0, 0]]
    # One more than each token of the table, and 3 + 1 behind its end.
    assert array(second).tolist() == [[6, 5, 3, 3, 3], [0] * 5]


def test_half_precision_logits_get_float32_scores():
    step, cache = writer([5, 4, 2])

    def half(last, cache, index):
        logits, cache = step(last, cache, index)
        return ops.cast(logits, "float16"), cache

    _, scores = GreedyGenerator(4)(half, cache, all_active(1))
    expected = sum(map(log_probability, [5, 4, 2]))
    np.testing.assert_allclose(array(scores), [expected], rtol=1e-4)


def test_a_cache_may_be_nested_and_change_its_values():
    def step(last, cache, index):
        seen = cache["seen"][0] + ops.squeeze(last, 1)
        logits = ops.one_hot(ops.mod(seen, V), V) * 9.0
        return ops.expand_dims(logits, 1), {"seen": (seen,)}

    start = {"seen": (ops.convert_to_tensor([2, 3], "int32"),)}
    ids, _ = GreedyGenerator(3, end_id=0)(step, start, all_active(2))
    # 2 + 1 = 3, 3 + 3 = 6, 6 + 6 = 5; 3 + 1 = 4, 4 + 4 = 1, 1 + 1 = 2 mod 7.
    assert array(ids).tolist() == [[3, 6, 5], [4, 1, 2]]


@pytest.mark.parametrize("max_length", [0, -1, 2.5, None])
def test_the_length_must_be_positive(max_length):
    with pytest.raises(ValueError, match="`max_length` must be a whole number"):
        GreedyGenerator(max_length)


def test_a_generator_must_say_how_it_chooses():
    with pytest.raises(TypeError, match=r"abstract.*advance.*begin.*finish"):
        Generator(3)


def test_padding_is_never_written_even_where_it_is_likeliest():
    step, cache = writer((0, 4, 0, 2))
    ids, scores = GreedyGenerator(5)(step, cache, all_active(1))
    # Where 0 is wanted, the likeliest of the others comes: 1.
    assert array(ids).tolist() == [[1, 4, 1, 2, 0]]
    away = log_probability(0) - 1
    expected = 2 * away + log_probability(4) + log_probability(2)
    np.testing.assert_allclose(array(scores), [expected], atol=1e-5)


@pytest.mark.parametrize(
    ("max_length", "lengths"),
    [
        (1, (1,)),
        (15, (15,)),
        (16, (8, 16)),
        (29, (10, 20, 29)),
        (32, (8, 16, 24, 32)),
        (131, (33, 66, 99, 131)),
    ],
)
def test_a_cache_grows_in_a_few_equal_steps(max_length, lengths):
    assert GreedyGenerator(max_length).cache_lengths == lengths


def test_a_growing_cache_is_grown_before_it_is_full():
    step, cache = writer([5, 4, 6, 3] * 6)
    room = []

    def needs_room(last, cache, index):
        logits, tokens = step(last, cache[0], index)
        assert int(index) < cache[1].shape[0]
        return logits, (tokens, cache[1])

    def grow(cache, length):
        room.append(length)
        return cache[0], ops.zeros(length)

    generator = GreedyGenerator(24)
    with op_by_op():
        ids, _ = generator(
            needs_room, (cache, ops.zeros(8)), all_active(1), grow_cache=grow
        )
    assert room == [8, 16, 24]
    assert array(ids).tolist() == [[5, 4, 6, 3] * 6]

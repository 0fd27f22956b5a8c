"""Rows that have ended give up their place, and nothing else changes."""

import functools

import keras
import numpy as np
import pytest
from backend_functions import swift
from generation.toy_steps import H
from generation.toy_steps import S
from generation.toy_steps import V
from generation.toy_steps import array
from generation.toy_steps import attention_trees
from generation.toy_steps import first_cache
from generation.toy_steps import step
from generation.toy_steps import trees
from keras import ops
from models.transformer.made import V_TARGET
from models.transformer.made import made

from keras_tfm.generation import BeamSearchGenerator
from keras_tfm.generation import GreedyGenerator
from keras_tfm.generation import NoRepeatNgram
from keras_tfm.generation import SamplingGenerator
from keras_tfm.tasks.decoding import make_writer

LENGTH = 5
GENERATORS = {
    "greedy": GreedyGenerator(LENGTH, min_length=2),
    "sampling": SamplingGenerator(LENGTH, seed=3),
    "beams": BeamSearchGenerator(LENGTH, 3, 2, constraints=[NoRepeatNgram(2)]),
    "coverage": BeamSearchGenerator(LENGTH, 2, coverage_penalty=0.4),
}


def take_rows(cache, rows):
    return {name: ops.take(x, rows, axis=0) for name, x in cache.items()}


@functools.cache
def both(name, rows):
    """Return what is found with and without `take_rows`."""
    generator = GENERATORS[name]
    random = np.random.default_rng(rows)
    logits = trees(rows, LENGTH, seed=rows)
    attention = attention_trees(rows, LENGTH) if name == "coverage" else None
    cache = first_cache(logits, LENGTH, generator.num_beams, attention)
    arguments = {
        "max_lengths": random.integers(1, LENGTH + 1, rows).astype("int32"),
        "seeds": random.integers(0, 99, rows).astype("int32"),
        "prefix": random.integers(3, V, (rows, 1)).astype("int32")
        * (random.random((rows, 1)) < 0.3),
    }
    if name == "coverage":
        arguments["source_mask"] = random.random((rows, S)) < 0.8
        arguments["source_mask"][:, 0] = True
    active = random.random(rows) < 0.9

    def run(cache, active, arguments):
        return [
            generator.n_best(step, cache, active, take_rows=take, **arguments)
            for take in (None, take_rows)
        ]

    found = swift(run)(
        {key: ops.convert_to_tensor(x) for key, x in cache.items()},
        ops.convert_to_tensor(active),
        {
            key: ops.convert_to_tensor(x.astype(x.dtype))
            for key, x in arguments.items()
        },
    )
    return [[array(x) for x in pair] for pair in found]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("greedy", 1),
        ("greedy", 67),
        ("sampling", 17),
        ("beams", 3),
        ("beams", 17),
        ("coverage", 17),
    ],
)
def test_what_is_written_stays_the_same(name, rows):
    (ids, scores), (fewer_ids, fewer_scores) = both(name, rows)
    np.testing.assert_array_equal(fewer_ids, ids)
    np.testing.assert_allclose(fewer_scores, scores, rtol=1e-6)
    if rows > 3:
        assert len({*(ids[:, 0] != 0).sum(-1).tolist()}) > 2
    assert H > 1


def test_the_batch_gets_smaller_when_few_rows_are_left():
    if keras.backend.backend() == "jax":
        # Loops are compiled there: shapes are those of the traces.
        expected = {16, 4, 1}
    else:
        expected = [16] * 2 + [4] * 2 + [1] * 3
    ends = np.full(16, 2)
    ends[[3, 5, 11]] = 4
    ends[[8]] = 7
    sizes = []

    def counted(last, cache, index):
        sizes.append(int(last.shape[0]))
        end = ops.equal(cache["ends"], index + 1)
        token = ops.where(end, 2, 3)
        wanted = ops.equal(ops.arange(V), ops.expand_dims(token, -1))
        return ops.expand_dims(ops.cast(wanted, "float32"), 1), cache

    ids, _ = GreedyGenerator(9)(
        counted,
        {"ends": ops.convert_to_tensor(ends.astype("int32"))},
        np.ones(16, bool),
        take_rows=take_rows,
    )
    assert (array(ids) != 0).sum(-1).tolist() == ends.tolist()
    if keras.backend.backend() == "jax":
        assert set(sizes) == expected
    else:
        assert sizes == expected


def test_a_model_writes_the_same():
    model, generator = made(), BeamSearchGenerator(32, 3)
    random = np.random.default_rng(4)
    source = random.integers(3, V_TARGET, (11, 7)).astype("int32")
    found = []
    for drop_rows in (False, True):
        write = make_writer(model, generator, drop_rows=drop_rows)
        ids, scores = swift(write)(ops.convert_to_tensor(source))
        found.append((array(ids), array(scores)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-5)

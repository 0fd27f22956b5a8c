"""Beam search against every sequence there is, and against plain Python."""

import functools
import itertools

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from generation.toy_steps import END
from generation.toy_steps import PAD
from generation.toy_steps import START
from generation.toy_steps import H
from generation.toy_steps import S
from generation.toy_steps import V
from generation.toy_steps import array
from generation.toy_steps import attention_trees
from generation.toy_steps import coverage
from generation.toy_steps import every_sequence
from generation.toy_steps import first_cache
from generation.toy_steps import log_probabilities
from generation.toy_steps import n_best
from generation.toy_steps import node_of
from generation.toy_steps import plain_beam_search
from generation.toy_steps import step
from generation.toy_steps import total
from generation.toy_steps import trees
from generation.toy_steps import unpadded
from keras import ops
from models.transformer.made import batch
from models.transformer.made import fresh
from models.transformer.made import logits as model_logits
from models.transformer.made import shaken

from keras_tfm.generation import BeamSearchGenerator
from keras_tfm.generation import GNMTLengthPenalty
from keras_tfm.generation import GreedyGenerator
from keras_tfm.generation import MeanLengthPenalty
from keras_tfm.generation import NoLengthPenalty
from keras_tfm.generation import NoRepeatNgram
from keras_tfm.ops.search import NEVER

# Each penalty, and its divisor worked out anew.
PENALTIES = {
    "none": (NoLengthPenalty(), lambda n: 1.0),
    "gnmt -1": (GNMTLengthPenalty(-1.0), lambda n: 6 / (5 + n)),
    "gnmt 0.6": (GNMTLengthPenalty(), lambda n: ((5 + n) / 6) ** 0.6),
    "gnmt 2": (GNMTLengthPenalty(2.0), lambda n: ((5 + n) / 6) ** 2),
    "mean": (MeanLengthPenalty(), lambda n: n),
}
# After 3 tokens 27 beginnings can be alive, each with 4 continuations.
SHORT, ALL = 4, 108
LONG = 5


def search(length, beams, penalty="gnmt 0.6", **kwargs):
    penalty = PENALTIES[penalty][0]
    return BeamSearchGenerator(length, beams, length_penalty=penalty, **kwargs)


def by_length(penalty):
    """Return the value of a hypothesis without coverage."""
    return lambda score, ids: score / PENALTIES[penalty][1](len(ids))


def assert_is(ids, scores, expected):
    """Compare the hypotheses of one row with pairs of a score and ids."""
    count = len(expected)
    assert [unpadded(row) for row in ids[:count]] == [x for _, x in expected]
    np.testing.assert_allclose(
        scores[:count], [score for score, _ in expected], atol=1e-5
    )
    assert (ids[count:] == PAD).all()
    assert (scores[count:] == np.float32(NEVER)).all()


@pytest.mark.parametrize(
    ("penalty", "few_values"),
    [*((name, False) for name in PENALTIES), ("none", True), ("gnmt 2", True)],
)
def test_a_beam_of_everything_finds_the_best_of_all(penalty, few_values):
    logits = trees(17, SHORT)
    if few_values:
        logits = np.round(logits / 3)
    ids, scores = n_best(search(SHORT, ALL, penalty), logits)
    assert ids.shape == (17, ALL, SHORT)
    value = by_length(penalty)
    for row, tree in enumerate(log_probabilities(logits)):
        all_of_them = sorted(
            (value(total(tree, x), x) for x in every_sequence(SHORT)),
            reverse=True,
        )
        np.testing.assert_allclose(scores[row], all_of_them[:ALL], atol=1e-5)
        found = [unpadded(x) for x in ids[row]]
        assert len(set(found)) == ALL
        np.testing.assert_allclose(
            scores[row], [value(total(tree, x), x) for x in found], atol=1e-5
        )


@pytest.mark.parametrize(
    ("beams", "penalty", "min_length"),
    [
        (1, "gnmt 0.6", 1),
        (2, "gnmt 2", 3),
        (3, "gnmt -1", 1),
        (3, "mean", 1),
        (4, "none", 4),
        (4, "gnmt 0.6", LONG),
        (7, "gnmt -1", 2),
    ],
)
def test_a_narrow_beam_is_that_of_plain_python(beams, penalty, min_length):
    rows = 31
    logits = trees(rows, LONG, seed=beams)
    limits = np.random.default_rng(3).integers(1, LONG + 1, rows)
    generator = search(LONG, beams, penalty, min_length=min_length)
    ids, scores = n_best(generator, logits, max_lengths=limits)
    for row, tree in enumerate(log_probabilities(logits)):
        expected = plain_beam_search(
            tree, beams, limits[row], by_length(penalty), min_length
        )
        assert_is(ids[row], scores[row], expected)


@pytest.mark.parametrize("hypotheses", [1, 2])
def test_fewer_hypotheses_are_the_first_of_more(hypotheses):
    # The search may stop sooner, and must not.
    logits = trees(37, LONG, seed=5)
    for penalty in ("gnmt -1", "gnmt 2"):
        generator = search(LONG, 3, penalty, num_hypotheses=hypotheses)
        ids, scores = n_best(generator, logits)
        assert ids.shape == (37, hypotheses, LONG)
        for row, tree in enumerate(log_probabilities(logits)):
            expected = plain_beam_search(tree, 3, LONG, by_length(penalty))
            assert_is(ids[row], scores[row], expected[:hypotheses])


def test_of_equals_the_first_beam_and_the_lowest_id_are_taken():
    logits = np.zeros((1, len(trees(1, LONG)[0]), V), "float32")
    logits[..., END] = -1.0  # Else the end comes at once.
    ids, scores = n_best(search(LONG, 5, "none"), logits)
    tree = log_probabilities(logits)[0].astype("float32")
    expected = plain_beam_search(tree, 5, LONG, by_length("none"))
    assert len({score for score, _ in expected}) < 5
    assert_is(ids[0], scores[0], expected)


def test_one_beam_without_a_penalty_is_greedy():
    logits = trees(41, LONG)
    ids, scores = n_best(search(LONG, 1, "none"), logits)
    greedy, greedy_scores = n_best(GreedyGenerator(LONG), logits)
    np.testing.assert_array_equal(ids, greedy)
    np.testing.assert_allclose(scores, greedy_scores, atol=1e-5)
    lengths = {len(unpadded(row[0])) for row in ids}
    assert lengths >= {1, 2, LONG}


def test_what_reaches_the_greatest_length_is_a_hypothesis():
    logits = trees(5, SHORT)
    logits[..., END] = -50.0
    ids, scores = n_best(search(SHORT, 4), logits)
    assert (ids != PAD).all()
    assert (ids != END).all()
    assert (scores > -50.0).all()


def test_coverage_rewards_a_source_that_is_read_to_its_end():
    rows, beams, beta = 23, 3, 0.4
    logits, attention = trees(rows, LONG), attention_trees(rows, LONG)
    lengths = np.random.default_rng(4).integers(1, S + 1, rows)
    source_mask = np.arange(S) < lengths[:, None]
    generator = search(LONG, beams, coverage_penalty=beta)
    ids, scores = n_best(generator, logits, attention, source_mask=source_mask)
    plain, _ = n_best(search(LONG, beams), logits)
    assert (ids != plain).any(axis=(1, 2)).mean() > 0.2
    for row, tree in enumerate(log_probabilities(logits)):

        def value(score, hypothesis, row=row):
            seen = coverage(attention[row], hypothesis, source_mask[row])
            return by_length("gnmt 0.6")(score, hypothesis) + beta * seen

        expected = plain_beam_search(tree, beams, LONG, value)
        assert_is(ids[row], scores[row], expected)


def test_no_beam_repeats_what_it_must_not():
    logits = trees(23, LONG, seed=6)
    generator = search(LONG, 3, constraints=[NoRepeatNgram(2)])
    ids, scores = n_best(generator, logits)

    def allow(written, token):
        pairs = list(itertools.pairwise(written))
        return not written or (written[-1], token) not in pairs

    for row, tree in enumerate(log_probabilities(logits)):
        expected = plain_beam_search(
            tree, 3, LONG, by_length("gnmt 0.6"), allow=allow
        )
        assert_is(ids[row], scores[row], expected)
    free, _ = n_best(search(LONG, 3), logits)
    assert (free != ids).any()


def test_each_row_begins_with_its_prefix():
    prefix = np.array(
        [[3, 4, 1], [4, 0, 0], [0, 0, 0], [3, END, 0], [END, 0, 0], [1, 3, 0]]
    )
    logits = trees(len(prefix), LONG, seed=7)
    # What is likeliest elsewhere must be forced; ends come before they may.
    generator = search(LONG, 4, min_length=4)
    ids, scores = n_best(generator, logits, prefix=prefix)
    for row, tree in enumerate(log_probabilities(logits)):
        wanted = unpadded(prefix[row])

        def free(written, token, wanted=wanted):
            place = len(written)
            return place >= len(wanted) or token == wanted[place]

        # The prefix goes before the fewest tokens.
        fewest = 1 if END in wanted else 4
        expected = plain_beam_search(
            tree, 4, LONG, by_length("gnmt 0.6"), fewest, free
        )
        assert_is(ids[row], scores[row], expected)


# A search that uses all there is.
WHOLE = search(
    LONG,
    3,
    coverage_penalty=0.3,
    min_length=2,
    constraints=[NoRepeatNgram(2)],
)


def everything(rows=13):
    """Return trees, trees of weights, and all the arguments of a call."""
    draw = np.random.default_rng(9).integers
    prefix = draw(3, V, (rows, 2)) * (np.arange(2) < draw(0, 3, (rows, 1)))
    arguments = {
        "active": np.arange(rows) % 5 != 1,
        "prefix": prefix.astype("int32"),
        "max_lengths": draw(1, LONG + 1, rows, dtype="int32"),
        "source_mask": np.arange(S) < draw(1, S + 1, (rows, 1)),
    }
    return trees(rows, LONG), attention_trees(rows, LONG), arguments


def test_a_compiled_search_is_that_of_a_loop_in_python():
    logits, attention, arguments = everything()
    ids, scores = n_best(WHOLE, logits, attention, **arguments)

    def run(cache, arguments):
        return WHOLE.n_best(step, cache, **arguments)

    cache = first_cache(logits, LONG, WHOLE.num_beams, attention)
    tensors = [
        {name: ops.convert_to_tensor(x) for name, x in given.items()}
        for given in (cache, arguments)
    ]
    found, found_scores = compiled(run)(*tensors)
    np.testing.assert_array_equal(array(found), ids)
    np.testing.assert_allclose(array(found_scores), scores, atol=1e-5)


def test_a_row_is_the_same_alone_in_a_batch_and_among_empty_rows():
    logits, attention, arguments = everything()
    ids, scores = n_best(WHOLE, logits, attention, **arguments)

    def of(rows):
        some = {name: x[rows] for name, x in arguments.items()}
        return n_best(WHOLE, logits[rows], attention[rows], **some)

    for row in (0, 5):
        alone, alone_scores = of(slice(row, row + 1))
        np.testing.assert_array_equal(alone[0], ids[row])
        np.testing.assert_allclose(alone_scores[0], scores[row], atol=1e-5)
    # The same rows, and empty ones between them.
    arguments["active"] = np.arange(len(ids)) % 2 == 0
    some, some_scores = of(slice(None))
    for row in range(0, len(ids), 2):
        if row % 5 != 1:
            np.testing.assert_array_equal(some[row], ids[row])
            np.testing.assert_allclose(some_scores[row], scores[row], atol=1e-5)


def test_rows_that_are_not_active_have_one_empty_hypothesis():
    logits, attention, arguments = everything()
    ids, scores = n_best(WHOLE, logits, attention, **arguments)
    empty = ~arguments["active"]
    assert empty.sum() == 3
    assert (ids[empty] == PAD).all()
    assert (scores[empty] == np.float32([0.0, NEVER, NEVER])).all()
    # In every row: finite numbers, the best first, no hypothesis twice.
    assert np.isfinite(scores).all()
    assert (np.diff(scores, axis=1) <= 0).all()
    for row in np.flatnonzero(~empty):
        real = [unpadded(x) for x in ids[row][scores[row] > NEVER / 2]]
        assert real
        assert all(real)
        assert len(set(real)) == len(real)


def test_a_call_returns_the_best_of_the_hypotheses():
    logits = trees(5, SHORT)
    generator = search(SHORT, 3)
    ids, scores = n_best(generator, logits)
    cache = first_cache(logits, SHORT, 3)
    cache = {name: ops.convert_to_tensor(x) for name, x in cache.items()}
    run = swift(lambda cache: generator(step, cache, np.ones(5, bool)))
    best, best_scores = run(cache)
    np.testing.assert_array_equal(array(best), ids[:, 0])
    np.testing.assert_allclose(array(best_scores), scores[:, 0], atol=1e-5)


def test_a_row_with_too_few_sequences_fills_up_with_empty_ones():
    logits = trees(3, SHORT)
    ids, scores = n_best(search(SHORT, 7), logits, max_lengths=[1, 1, 1])
    for row, tree in enumerate(log_probabilities(logits)):
        expected = sorted((tree[0, t], (t,)) for t in (1, 2, 3, 4))[::-1]
        assert_is(ids[row], scores[row], expected)


def test_what_a_row_that_is_done_computes_changes_nothing():
    logits = trees(11, LONG, seed=11)
    generator = search(LONG, 3, num_hypotheses=1)
    limits = np.full(11, LONG)
    ids, scores = n_best(generator, logits, max_lengths=limits)
    limits[1::2] = 2
    expected, expected_scores = n_best(generator, logits, max_lengths=limits)
    # Behind the second token the rows that must end are full of NaN.
    first_deep_node = 1 + V
    logits[1::2, first_deep_node:] = np.nan
    broken, broken_scores = n_best(generator, logits, max_lengths=limits)
    np.testing.assert_array_equal(broken, expected)
    np.testing.assert_allclose(broken_scores, expected_scores, atol=1e-5)
    np.testing.assert_array_equal(broken[::2], ids[::2])
    np.testing.assert_allclose(broken_scores[::2], scores[::2], atol=1e-5)


@pytest.mark.parametrize(
    ("penalty", "calls"), [("none", 1), ("gnmt -1", 1), ("mean", 11)]
)
def test_a_search_stops_when_nothing_better_can_come(penalty, calls):
    # The end has probability 0.6 at first. What goes on has 0.2, and then 0.9:
    # without a penalty 0.6 is safe, but a mean of 11 tokens may be better.
    seen = []
    table = np.log(
        [[1e-9, 0.1, 0.6, 0.1, 0.2], [1e-9, 0.9, 0.04, 0.03, 0.03]]
    ).astype("float32")

    def counted(last, cache, index, ancestors):
        seen.append(int(index))
        logits = np.broadcast_to(table[min(int(index), 1)], (1, 2, V))
        return ops.convert_to_tensor(logits), cache

    generator = search(11, 2, penalty, num_hypotheses=1)
    if keras.backend.backend() == "jax":
        import jax

        with jax.disable_jit():
            generator.n_best(counted, (), [True])
    else:
        generator.n_best(counted, (), [True])
    assert seen == list(range(calls))


def test_weights_come_from_the_beams_that_wrote_the_tokens():
    rows, beams = 7, 3
    logits, attention = trees(rows, LONG, 13), attention_trees(rows, LONG)
    generator = search(LONG, beams)
    plain_ids, plain_scores = n_best(generator, logits)
    cache = first_cache(logits, LONG, beams, attention)
    cache = {name: ops.convert_to_tensor(x) for name, x in cache.items()}
    run = swift(
        lambda cache: generator.n_best(
            step, cache, np.ones(rows, bool), return_attention_scores=True
        )
    )
    ids, scores, weights = run(cache)
    ids = array(ids)
    np.testing.assert_array_equal(ids, plain_ids)
    np.testing.assert_allclose(array(scores), plain_scores, atol=1e-5)
    (cross,), (own,) = weights["cross"], weights["decoder"]
    assert tuple(cross.shape) == (rows, beams, H, LONG, S)
    assert tuple(own.shape) == (rows, beams, 1, LONG, LONG)
    for row in range(rows):
        for place in range(beams):
            hypothesis = unpadded(ids[row, place])
            expected = np.zeros((LONG, H, S))
            for i in range(len(hypothesis)):
                node = node_of(hypothesis[:i])
                expected[i] = attention[row, node].reshape(H, S)
            np.testing.assert_allclose(
                array(cross)[row, place], expected.swapaxes(0, 1), atol=1e-6
            )
            expected = np.tril(np.ones((LONG, LONG)))
            expected /= expected.sum(1, keepdims=True)
            expected[len(hypothesis) :] = 0
            np.testing.assert_allclose(
                array(own)[row, place, 0], expected, atol=1e-6
            )


# A real model: with these weights and this end some hypotheses end early and
# others do not.
BEAMS, MODEL_LENGTH, MODEL_SEED, MODEL_END = 3, 7, 9, 8


@functools.cache
def model():
    return shaken(fresh(), MODEL_SEED)


GENERATORS = {
    "greedy": GreedyGenerator(MODEL_LENGTH, end_id=MODEL_END),
    "beam": BeamSearchGenerator(MODEL_LENGTH, BEAMS, end_id=MODEL_END),
}


def source_ids():
    return batch()[0]


def search_by_model(source, name, with_weights, build):
    model()  # Made now, not while the loop is traced.
    generator = GENERATORS[name]

    def run(source):
        return generator.n_best(
            model().step,
            model().initial_cache(source, MODEL_LENGTH, generator.num_beams),
            ops.any(source != 0, axis=1),
            return_attention_scores=with_weights,
        )

    found = build(run)(ops.convert_to_tensor(source, "int32"))
    return keras.tree.map_structure(array, found)


@functools.cache
def found_by_model(name, with_weights=False, build=swift):
    return search_by_model(source_ids(), name, with_weights, build)


def read_by_model(ids):
    return np.concatenate([np.full((len(ids), 1), START), ids[:, :-1]], axis=1)


def test_scores_are_those_of_teacher_forcing():
    ids, scores = found_by_model("beam")
    assert (np.diff(scores, axis=1) <= 0).all()
    lengths = (ids != PAD).sum(-1)
    assert len(np.unique(lengths)) > 3
    for place in range(BEAMS):
        fed = read_by_model(ids[:, place])
        forced = log_probabilities(model_logits(model(), source_ids(), fed))
        each = np.take_along_axis(forced, ids[:, place, :, None], -1)[..., 0]
        sums = (each * (ids[:, place] != PAD)).sum(1)
        divisor = ((5 + lengths[:, place]) / 6) ** 0.6
        np.testing.assert_allclose(scores[:, place] * divisor, sums, atol=1e-4)


@pytest.mark.parametrize("name", GENERATORS)
def test_weights_are_those_of_a_full_pass(name):
    ids, scores, weights = found_by_model(name, with_weights=True)
    plain_ids, plain_scores = found_by_model(name)
    np.testing.assert_array_equal(ids, plain_ids)
    np.testing.assert_allclose(scores, plain_scores, atol=1e-5)
    full = swift(model().attention_scores)
    for place in range(ids.shape[1]):
        wrote = (ids[:, place] != PAD)[:, None, :, None]
        expected = full(
            ops.convert_to_tensor(source_ids()),
            ops.convert_to_tensor(read_by_model(ids[:, place]), "int32"),
        )
        for kind in ("cross", "decoder"):
            for found, block in zip(weights[kind], expected[kind], strict=True):
                np.testing.assert_allclose(
                    found[:, place], array(block) * wrote, atol=1e-5
                )


def test_a_compiled_search_of_a_model_is_the_same():
    ids, scores, weights = found_by_model("beam", with_weights=True)
    found = found_by_model("beam", with_weights=True, build=compiled)
    np.testing.assert_array_equal(found[0], ids)
    np.testing.assert_allclose(found[1], scores, atol=1e-4)
    keras.tree.map_structure(
        functools.partial(np.testing.assert_allclose, atol=1e-4),
        found[2],
        weights,
    )


def test_padding_of_the_source_changes_nothing():
    ids, scores = found_by_model("beam")
    more = np.pad(source_ids(), ((0, 1), (0, 4)))
    padded_ids, padded_scores = search_by_model(more, "beam", False, swift)
    np.testing.assert_array_equal(padded_ids[:-1], ids)
    np.testing.assert_allclose(padded_scores[:-1], scores, atol=1e-4)
    assert (padded_ids[-1] == PAD).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_beams": 0}, "`num_beams` must be a whole number"),
        ({"num_hypotheses": 0}, "`num_hypotheses` must be a whole number"),
        (
            {"num_beams": 3, "num_hypotheses": 5},
            "`num_hypotheses` must be at most `num_beams`. Received: "
            "num_hypotheses=5, num_beams=3",
        ),
        ({"coverage_penalty": -0.1}, "must be at least 0. Received: -0.1"),
        ({"min_length": 9}, "min_length=9, max_length=7"),
    ],
)
def test_what_is_out_of_range_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        BeamSearchGenerator(7, **kwargs)


def test_coverage_needs_the_source():
    generator = search(3, 2, coverage_penalty=0.2)
    with pytest.raises(ValueError, match="Pass `source_mask`, boolean"):
        generator.n_best(step, (), [True])

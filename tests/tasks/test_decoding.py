"""A model as functions of ids: writing, scoring, encoding."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tfm.generation.beam_search import BeamSearchGenerator
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.generation.sampling import SamplingGenerator
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.decoding import make_encoder
from keras_tfm.tasks.decoding import make_scorer
from keras_tfm.tasks.decoding import make_writer


@pytest.fixture
def model():
    model = Transformer(
        11, num_layers=1, hidden_dim=8, intermediate_dim=13, num_heads=2
    )
    rng = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def test_a_row_of_padding_is_not_decoded(model):
    write = make_writer(model, GreedyGenerator(max_length=7))
    ids, scores = write(ops.convert_to_tensor([[5, 4, 2], [0, 0, 0]], "int32"))
    assert np.any(np.asarray(ids)[0] != 0)
    assert not np.any(np.asarray(ids)[1])
    assert float(scores[1]) == 0


def test_greedy_choices_are_the_models_own(model):
    write = make_writer(model, GreedyGenerator(max_length=7))
    source = np.array([[5, 4, 9, 2]], "int32")
    ids = np.asarray(write(ops.convert_to_tensor(source))[0])[0]
    written = [1]
    for token in ids:
        logits = model(
            {"source_ids": source, "target_ids": np.array([written])}
        )
        assert int(np.argmax(logits[0, -1])) == token
        written.append(int(token))
        if token == 2:
            break


def test_the_weights_are_those_at_the_time_of_the_call(model):
    write = make_writer(model, GreedyGenerator(max_length=3))
    source = ops.convert_to_tensor([[5, 4, 2]], "int32")
    before = np.asarray(write(source)[1])
    for weight in model.weights:
        weight.assign(weight * 0.5)
    assert keras.ops.all(write(source)[1] != before)


def test_n_best_holds_the_best_of_all_first(model):
    search = BeamSearchGenerator(5, num_beams=3)
    source = ops.convert_to_tensor([[5, 4, 2], [7, 2, 0]], "int32")
    best, score = make_writer(model, search)(source)
    ids, scores = make_writer(model, search, n_best=True)(source)
    assert tuple(ids.shape) == (2, 3, 5)
    np.testing.assert_array_equal(ids[:, 0], best)
    np.testing.assert_array_equal(scores[:, 0], score)


@pytest.mark.parametrize(("factor", "longest"), [(1.0, (3, 2)), (1.4, (5, 3))])
def test_a_factor_limits_a_row_by_its_own_source(model, factor, longest):
    # An end that is never chosen: every row goes to its limit.
    generator = GreedyGenerator(7, min_length=7)
    write = make_writer(model, generator, max_length_factor=factor)
    source = ops.convert_to_tensor([[5, 4, 2, 0], [7, 2, 0, 0]], "int32")
    ids, _ = write(source)
    assert (np.asarray(ids) != 0).sum(axis=1).tolist() == list(longest)


def test_what_is_drawn_for_a_text_does_not_depend_on_its_batch(model):
    write = make_writer(model, SamplingGenerator(6, temperature=3.0))
    source = np.array([[5, 4, 2], [7, 9, 2], [8, 2, 0]], "int32")
    ids, _ = write(ops.convert_to_tensor(source))
    padded = np.pad(source[::-1], ((0, 2), (0, 3)))
    again, _ = write(ops.convert_to_tensor(padded))
    np.testing.assert_array_equal(np.asarray(again)[:3][::-1], ids)
    assert len({tuple(row) for row in np.asarray(ids).tolist()}) == 3


def test_a_coverage_penalty_knows_the_padding(model):
    search = BeamSearchGenerator(5, num_beams=2, coverage_penalty=0.2)
    source = np.array([[5, 4, 2]], "int32")
    write = make_writer(model, search)
    ids, scores = write(ops.convert_to_tensor(source))
    more = write(ops.convert_to_tensor(np.pad(source, ((0, 0), (0, 4)))))
    np.testing.assert_array_equal(more[0], ids)
    np.testing.assert_allclose(more[1], scores, rtol=1e-5)


def test_a_score_is_the_sum_of_the_log_probabilities_of_a_pass(model):
    source = np.array([[5, 4, 2], [7, 2, 0], [0, 0, 0]], "int32")
    target = np.array([[8, 9, 3, 2], [2, 0, 0, 0], [2, 0, 0, 0]], "int32")
    found = make_scorer(model)(*map(ops.convert_to_tensor, (source, target)))
    fed = np.array([[1, 8, 9, 3], [1, 0, 0, 0]], "int32")
    logits = model({"source_ids": source[:2], "target_ids": fed})
    logits = np.asarray(logits).astype("float64")
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = [
        logits[0, 0, 8] + logits[0, 1, 9] + logits[0, 2, 3] + logits[0, 3, 2],
        logits[1, 0, 2],
        0.0,  # An empty source has no score.
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_what_greedy_writes_scores_what_greedy_says(model):
    source = ops.convert_to_tensor([[5, 4, 9, 2], [6, 2, 0, 0]], "int32")
    ids, scores = make_writer(model, GreedyGenerator(7))(source)
    np.testing.assert_allclose(
        make_scorer(model)(source, ids), scores, rtol=1e-4
    )


def test_an_encoding_is_the_mean_over_the_real_tokens(model):
    source = np.array([[5, 4, 2], [7, 2, 0], [0, 0, 0]], "int32")
    found = np.asarray(make_encoder(model)(ops.convert_to_tensor(source)))
    for row, length in enumerate((3, 2)):
        vectors = np.asarray(model.encode(source[row : row + 1, :length]))[0]
        np.testing.assert_allclose(
            found[row], vectors.mean(axis=0), rtol=1e-4, atol=1e-5
        )
    assert (found[2] == 0).all()

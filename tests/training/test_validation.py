"""Validation keeps what was best and stops in time."""

import json
import math

import numpy as np
import pytest
from training.tiny_training import assert_same
from training.tiny_training import at_each_step
from training.tiny_training import compiled_model
from training.tiny_training import fit
from training.tiny_training import weights_of

from keras_tfm.training.checkpoint_averaging import CheckpointAveraging
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots
from keras_tfm.training.validation import Validation

NAN = math.nan


def scores(*values, name="validation_bleu"):
    """Return a function that gives one result after another."""
    results = iter(values)
    return lambda: {name: next(results), "validation_other": 0.0}


def validate(validation, steps):
    """Let it act after each step, as in `fit`, on a model that stays."""
    model = compiled_model()
    validation.set_model(model)
    model.stop_training = False
    for step in range(1, steps + 1):
        if not model.stop_training:
            validation.act(step)


def test_results_are_kept_with_their_step_and_handed_on():
    said = []
    validation = Validation(
        scores(1.0, 3, np.float32(2)), 2, on_result=said.append
    )
    fit(compiled_model(), [validation], 7)
    assert validation.history == [
        {"step": 2, "validation_bleu": 1.0, "validation_other": 0.0},
        {"step": 4, "validation_bleu": 3.0, "validation_other": 0.0},
        {"step": 6, "validation_bleu": 2.0, "validation_other": 0.0},
    ]
    assert said == validation.history
    assert validation.best is validation.history[1]
    assert validation.results_since_best == 1
    assert not validation.exhausted


@pytest.mark.parametrize(
    ("values", "patience", "stops_at"),
    [
        ((1, 2, 2, 3, 1, 3, 9), 2, 6),
        ((1, 0, 2, 1, 3, 2, 4), 2, None),
        ((3, 2, 9, 9, 9, 9, 9), 1, 2),
        ((NAN, 1, NAN, NAN, NAN, 9, 9), 3, 5),
        ((NAN, NAN, 3, 4, 5, 6, 7), 2, 2),
    ],
)
def test_stops_after_so_many_results_without_a_better_one(
    values, patience, stops_at
):
    validation = Validation(scores(*values), 1, patience=patience)
    validate(validation, 7)
    assert len(validation.history) == (stops_at or 7)
    assert validation.exhausted == (stops_at is not None)


@pytest.mark.parametrize(
    ("name", "arguments", "best_step"),
    [
        ("validation_loss", {}, 2),
        ("validation_perplexity", {}, 2),
        ("validation_bleu", {}, 3),
        ("token_accuracy", {}, 3),
        ("validation_ter", {"mode": "lower"}, 2),
        ("validation_loss", {"mode": "higher"}, 3),
        ("validation_ter", {"monitor": "validation_other", "mode": "lower"}, 1),
    ],
)
def test_the_name_or_the_mode_says_what_is_better(name, arguments, best_step):
    validation = Validation(scores(2, 1, 3, 3, 1, name=name), 1, **arguments)
    validate(validation, 5)
    # The earlier one of two equals.
    assert validation.best["step"] == best_step


def test_the_best_weights_are_saved_and_brought_back(tmp_path):
    validation = Validation(scores(1, 2, 5, 5, 4), 2, best_path=tmp_path / "b")
    model, seen = compiled_model(), []
    look = at_each_step(lambda m: seen.append(weights_of(m)), model)
    fit(model, [validation, look], 11)
    assert validation.restore_best(model) == validation.history[2]
    assert_same(weights_of(model), seen[5])
    names = sorted(path.name for path in (tmp_path / "b").iterdir())
    # The one before stays until a checkpoint knows the better one.
    assert names == ["step_00000004.npz", "step_00000006.npz"]


def test_averaged_weights_are_what_is_scored_and_saved(tmp_path):
    averaging = CheckpointAveraging(
        Snapshots(tmp_path / "s", LastSnapshots(2)), 2
    )
    model, scored, seen = compiled_model(), [], []

    def score():
        scored.append(weights_of(model))
        return {"validation_loss": 1 / len(scored)}

    validation = Validation(
        score, 3, averaging=averaging, best_path=tmp_path / "best"
    )
    look = at_each_step(lambda m: seen.append(weights_of(m)), model)
    fit(model, [averaging, validation, look], 7)
    expected = [
        np.mean([a, b], axis=0, dtype="float64").astype("float32")
        for a, b in zip(seen[3], seen[5], strict=True)
    ]
    assert_same(scored[0], seen[1])
    assert_same(scored[1], expected)
    assert_same(weights_of(model), seen[6])
    validation.restore_best(model)
    assert_same(weights_of(model), expected)


def test_its_state_survives_json():
    validation = Validation(scores(1, 3, NAN, 2.5), 1, patience=3)
    validate(validation, 4)
    other = Validation(scores(9), 1, patience=3)
    other.restore(json.loads(json.dumps(validation.state())))
    assert other.state()["history"][3] == validation.history[3]
    assert other.best == {
        "step": 2,
        "validation_bleu": 3.0,
        "validation_other": 0.0,
    }
    assert other.results_since_best == 2
    # No part of the validation is handed out.
    other.state()["history"][0]["step"] = 99
    assert other.history[0]["step"] == 1


@pytest.mark.parametrize(
    "state", [{}, [], {"history": [3]}, {"history": [{"validation_bleu": 1}]}]
)
def test_refuses_a_state_that_is_none(state):
    with pytest.raises(ValueError, match="is a dictionary with its `history`"):
        Validation(scores(), 1).restore(state)


def test_without_results_there_is_no_best(tmp_path):
    model = compiled_model()
    before = weights_of(model)
    validation = Validation(scores(), 1, best_path=tmp_path)
    assert validation.best is None
    assert validation.restore_best(model) is None
    assert_same(weights_of(model), before)


def test_says_that_the_best_weights_were_not_saved(tmp_path):
    validation = Validation(scores(1), 1)
    with pytest.raises(
        ValueError, match="Give `best_path`, the path of a fold"
    ):
        validation.restore_best(compiled_model())
    lost = Validation(scores(1), 1, best_path=tmp_path)
    lost.restore({"history": [{"step": 1, "validation_bleu": 1.0}]})
    with pytest.raises(FileNotFoundError, match=r"There is no .*00001\.npz"):
        lost.restore_best(compiled_model())


@pytest.mark.parametrize("result", [{}, None, 3.0, {"step": 1}])
def test_a_score_must_be_a_dictionary(result):
    with pytest.raises(ValueError, match="must return a dictionary of floats"):
        validate(Validation(lambda: result, 1), 1)


def test_says_what_it_does_not_know():
    with pytest.raises(
        ValueError, match="Is a higher 'validation_ter' better,"
    ):
        Validation(scores(1), 1, monitor="validation_ter")
    with pytest.raises(
        ValueError, match="Is a higher 'ter' better, or a lower"
    ):
        validate(Validation(scores(1, name="ter"), 1), 1)
    with pytest.raises(
        ValueError, match=r"'loss', which .*: validation_bleu, v"
    ):
        validate(Validation(scores(1), 1, monitor="loss"), 1)
    with pytest.raises(ValueError, match="Did you mean 'lower'"):
        Validation(scores(1), 1, mode="low")
    with pytest.raises(ValueError, match="Received: patience=0"):
        Validation(scores(1), 1, patience=0)

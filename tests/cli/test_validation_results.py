"""The best result is found in a log, and a line says what was measured."""

import math

import pytest

from keras_tfm.cli.train_options import TrainingMetric
from keras_tfm.cli.validation_results import Standing
from keras_tfm.cli.validation_results import result_line
from keras_tfm.cli.validation_results import result_names
from keras_tfm.cli.validation_results import standing
from keras_tfm.tasks.scores import bleu
from keras_tfm.tasks.scores import chrf
from keras_tfm.tasks.scores import exact_match
from keras_tfm.tasks.validating import _word
from keras_tfm.training.training_log_file import append_row

BLEU, LOSS = "validation_bleu", "validation_loss"


@pytest.fixture
def log(tmp_path):
    """Return the path of a log of a training with five validations."""
    path = tmp_path / "training_log.csv"
    scores = [(1.0, 4.0), (5.0, 3.0), (math.nan, 2.0), (5.0, 2.5), (3.0, 2.0)]
    for number, (score, loss) in enumerate(scores, start=1):
        append_row(path, {"step": 70 * number, "loss": 9.0})
        append_row(path, {"step": 70 * number, BLEU: score, LOSS: loss})
    return path


def test_the_best_is_the_highest_and_the_earlier_of_two_equals(log):
    assert standing(log, BLEU) == Standing(step=140, value=5.0, since=3)


def test_of_losses_the_lowest_is_best(log):
    assert standing(log, LOSS) == Standing(step=210, value=2.0, since=2)


def test_before_the_first_result_nothing_is_best(tmp_path):
    path = tmp_path / "training_log.csv"
    assert standing(path, BLEU) is None
    append_row(path, {"step": 70, "loss": 9.0})
    assert standing(path, BLEU) is None


def test_a_line_says_all_results():
    result = {
        "step": 1200,
        "validation_bleu": 35.2071,
        "validation_chrf": 55.1,
        "validation_loss": 2.03,
        "validation_accuracy": 0.6118,
    }
    assert result_line(result, BLEU, is_best=True) == (
        "step 1,200 · validation BLEU 35.21 (best so far) · chrF 55.10 · loss "
        "2.0300 · accuracy 61.2%"
    )
    assert "best" not in result_line(result, BLEU, is_best=False)
    exact = {"step": 7, "validation_exact_match": 12.5}
    assert result_line(exact, "validation_exact_match", is_best=False) == (
        "step 7 · validation exact match 12.50"
    )


def test_the_names_are_those_of_the_scores():
    texts = (["a"], ["a"])
    scores = {
        "bleu": [bleu(*texts), chrf(*texts)],
        "exact": [exact_match(*texts)],
        "loss": [],
    }
    assert {*scores} == {*TrainingMetric}
    for metric, found in scores.items():
        names = [f"validation_{_word(score.name)}" for score in found]
        assert result_names(metric) == (
            *names,
            "validation_loss",
            "validation_accuracy",
        )

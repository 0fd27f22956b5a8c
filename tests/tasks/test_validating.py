"""What is measured while a translator is trained, and what comes of it."""

import math

import keras
import numpy as np
import pytest

from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.training_run import compile_network
from keras_tfm.tasks.training_run import network_for
from keras_tfm.tasks.translation import Translator
from keras_tfm.tasks.validating import ValidationPlan

TEXTS = [f"{n:02}" for n in range(37)]
PAIRS = SentencePairs(TEXTS, [text[::-1] for text in TEXTS])
FEW = SentencePairs(TEXTS[:5], [text[::-1] for text in TEXTS[:5]])


@pytest.fixture(scope="module")
def translator():
    keras.utils.set_random_seed(0)
    return Translator.from_pairs(
        PAIRS,
        tokenizer="characters",
        num_layers=1,
        hidden_dim=6,
        intermediate_dim=7,
        num_heads=3,
        max_target_length=5,
        source_lengths=(5,),
    )


def results(translator, settings, **arguments):
    batches = translator.batches(PAIRS, settings)
    network = network_for(translator.model, batches, settings)
    compile_network(network, settings)
    # One pass over a few rows: to compile it would take longer.
    network.run_eagerly = True
    plan = ValidationPlan(translator, FEW, **arguments)
    return plan.scorer(network, batches, settings)()


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_the_loss_is_that_of_scoring_the_targets(
    translator, accumulation_steps
):
    settings = TrainingSettings(
        tokens_per_batch=16, accumulation_steps=accumulation_steps
    )
    found = results(translator, settings, metric="loss")
    scores = translator.score(list(FEW.sources), list(FEW.targets))
    tokens = sum(len(text) + 1 for text in FEW.targets)
    assert found["validation_loss"] == pytest.approx(
        -scores.sum() / tokens, abs=1e-4
    )
    assert set(found) == {"validation_loss", "validation_accuracy"}


def test_scores_come_first_and_are_those_of_evaluate(translator):
    settings = TrainingSettings(tokens_per_batch=16)
    found = results(translator, settings, metric="exact")
    (expected,) = translator.evaluate(FEW, "exact")
    assert next(iter(found)) == "validation_exact_match"
    assert found["validation_exact_match"] == expected.value


def test_training_ends_with_the_weights_that_were_best(translator, tmp_path):
    seen = []
    plan = ValidationPlan(
        translator,
        FEW,
        metric="loss",
        every_steps=2,
        on_result=seen.append,
    )
    translator.fit(
        PAIRS,
        TrainingSettings(tokens_per_batch=32, peak=0.3, warmup_steps=1),
        steps=9,
        folder=tmp_path,
        validation=plan,
    )
    assert [result["step"] for result in seen] == [2, 4, 6, 8]
    best = min(result["validation_loss"] for result in seen)
    scores = translator.score(list(FEW.sources), list(FEW.targets))
    tokens = sum(len(text) + 1 for text in FEW.targets)
    assert best == pytest.approx(-scores.sum() / tokens, abs=1e-4)
    assert math.isfinite(best)
    assert np.isfinite(translator.model.get_weights()[0]).all()

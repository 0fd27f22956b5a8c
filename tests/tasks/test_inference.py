"""Translations, hypotheses, scores and vectors of texts, by a real model."""

import keras
import numpy as np
import pytest

from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.generation import BannedTokens
from keras_tfm.generation import BeamSearchGenerator
from keras_tfm.generation import NoLengthPenalty
from keras_tfm.tasks.translation import Translator

TEXTS = ["ab", "", "bbab", "a"]


@pytest.fixture(scope="module")
def translator():
    keras.utils.set_random_seed(3)
    pairs = SentencePairs(["ab", "ba", "aab"], ["xy", "yx", "xxy"], "letters")
    made = Translator.from_pairs(
        pairs,
        tokenizer="characters",
        joint=False,
        max_target_length=5,
        source_lengths=(7,),
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
    )
    made.batch_sizes = (3,)
    return made


@pytest.fixture(scope="module")
def search():
    # An untrained model would write marks that no text shows.
    marks = BannedTokens([1, 3])
    return BeamSearchGenerator(
        5, 3, length_penalty=NoLengthPenalty(), constraints=[marks]
    )


def test_hypotheses_come_best_first_and_are_scored_alike(translator, search):
    found = translator.translate_nbest(TEXTS, search)
    assert [len(hypotheses) for hypotheses in found] == [3, 1, 3, 3]
    assert found[1][0].text == ""
    assert found[1][0].score == 0.0
    best = translator.translate(TEXTS, search)
    for text, hypotheses, first in zip(TEXTS, found, best, strict=True):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert hypotheses[0].text == first
        if not text:
            continue
        # Those that end within the length are scored as a whole text is.
        for hypothesis in hypotheses:
            if len(hypothesis.text) < 5:
                np.testing.assert_allclose(
                    translator.score([text], [hypothesis.text]),
                    hypothesis.score,
                    rtol=1e-4,
                )


def test_the_translators_own_generator_is_used_where_none_is_given(
    translator, search
):
    greedy = translator.translate(TEXTS)
    own = translator.generator
    translator.generator = search
    try:
        assert translator.translate(TEXTS) == translator.translate(
            TEXTS, search
        )
    finally:
        translator.generator = own
    assert translator.translate(TEXTS) == greedy


def test_a_score_does_not_depend_on_its_company(translator):
    targets = ["xy", "", "yyyy", ""]
    scores = translator.score(TEXTS, targets)
    assert scores.dtype == "float32"
    assert scores[1] == 0.0
    assert (scores[[0, 2, 3]] < 0).all()
    for place in range(4):
        alone = translator.score([TEXTS[place]], [targets[place]])
        np.testing.assert_allclose(alone[0], scores[place], rtol=1e-5)


def test_a_vector_for_each_text(translator):
    vectors = translator.encode(TEXTS)
    assert vectors.shape == (4, 8)
    assert (vectors[1] == 0).all()
    np.testing.assert_allclose(
        translator.encode(TEXTS[2:3])[0], vectors[2], atol=1e-5
    )


def test_nothing_gives_nothing(translator, search):
    assert translator.translate_nbest([], search) == []
    assert translator.score([], []).shape == (0,)
    assert translator.encode([]).shape == (0, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.score(["a", "b"], ["x"]), "2 sources and 1 targets"),
        (lambda t: t.score("a", ["x"]), "`score` takes a list of texts"),
        (lambda t: t.score(["a"], "x"), "`score` takes a list of texts"),
        (lambda t: t.encode("a"), "`encode` takes a list of texts"),
        (lambda t: t.translate_nbest("a"), "`translate_nbest` takes a list"),
        (lambda t: t.score(["a"], ["x" * 7]), "Target 1 takes 8 tokens"),
        (lambda t: t.score(["b" * 7], ["x"]), "Text 1 takes 8 tokens"),
    ],
)
def test_wrong_texts_are_named(translator, call, message):
    with pytest.raises(ValueError, match=message):
        call(translator)

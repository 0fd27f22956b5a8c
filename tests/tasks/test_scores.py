"""Scores are sacrebleu's, with signatures, and refuse unequal counts."""

import pytest
from sacrebleu.metrics import BLEU

from keras_tfm.tasks.scores import Score
from keras_tfm.tasks.scores import bleu
from keras_tfm.tasks.scores import chrf
from keras_tfm.tasks.scores import exact_match

HYPOTHESES = ["The cat sat on the mat .", "A dog runs in the park ."]
REFERENCES = ["the cat sat on a mat .", "A dog ran in the park ."]


def test_bleu_is_sacrebleus():
    expected = BLEU().corpus_score(HYPOTHESES, [REFERENCES])
    score = bleu(HYPOTHESES, REFERENCES)
    assert score.value == pytest.approx(expected.score, abs=1e-5)
    assert "tok:13a" in score.signature


def test_bleu_takes_a_tokenizer_and_lower_cases():
    lower = bleu(HYPOTHESES, REFERENCES, tokenize="none", lowercase=True)
    assert "tok:none" in lower.signature
    assert "case:lc" in lower.signature
    assert lower.value > bleu(HYPOTHESES, REFERENCES).value


def test_chrf_counts_characters():
    assert chrf(["abcdefg"], ["abcdefg"]).value == 100
    assert 0 < chrf(["abcdefg"], ["abcdefh"]).value < 100
    assert "nc:6" in chrf(["abcdefg"], ["abcdefg"]).signature


def test_exact_match_by_hand():
    assert exact_match(["a", "b", "c"], ["a", "x", "c"]).value == (
        pytest.approx(200 / 3)
    )


def test_a_score_prints_with_its_signature():
    assert str(Score("BLEU", 12.345, "sig")) == "BLEU = 12.35  sig" or (
        str(Score("BLEU", 12.345, "sig")) == "BLEU = 12.34  sig"
    )
    assert str(Score("exact match", 50.0)) == "exact match = 50.00"


@pytest.mark.parametrize("score", [bleu, chrf, exact_match])
@pytest.mark.parametrize("sides", [(["a"], ["a", "b"]), ([], [])])
def test_refuses_unequal_counts_and_nothing(score, sides):
    with pytest.raises(ValueError, match="one reference for each translation"):
        score(*sides)

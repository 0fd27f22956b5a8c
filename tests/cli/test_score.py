"""A log-probability for each pair, and one line on all of them."""

import math
import re

import keras
import numpy as np
import pytest

from keras_tfm.cli.score import count_tokens
from keras_tfm.cli.score import summary
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.tasks.serving import id_function
from keras_tfm.tasks.translation import Translator

# The characters of the target and its end.
PAIRS = [("eins", "one", 4), ("zwei", "three", 6), ("drei", "ox", 3)]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.tsv"
    lines = (f"{source}\t{target}\n" for source, target, _ in PAIRS)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def ids_of(translator, text):
    return translator.source_tokenizer.tokenize([text]).to_list()[0]


@pytest.fixture(scope="module")
def expected(translator):
    """Return the scores, computed without padding and without compiling."""
    score = id_function(translator, "score")
    found = []
    for source, target, _ in PAIRS:
        sides = [
            keras.ops.array([[*ids_of(translator, text), 2]])
            for text in (source, target)
        ]
        found.append(float(score(*sides)[0]))
    return found


def test_each_pair_has_a_line_and_all_have_one(
    run, model_folder, data, expected
):
    code, output, errors = run("score", "--folder", model_folder, "--tsv", data)
    assert code == 0
    assert output == "".join(f"{score:.4f}\n" for score in expected)
    mean = sum(expected) / 13
    assert errors == (
        f"keras-tfm: {data}: 3 pairs, 13 tokens, log-probability a token "
        f"{mean:.4f}, perplexity {math.exp(-mean):.4f}\n"
    )
    # A model that has learned nothing finds its 20 or so characters alike.
    assert 5 < float(re.search(r"perplexity (\S+)", errors)[1]) < 100


def test_a_score_can_be_that_of_a_token_and_go_to_a_file(
    run, model_folder, data, tmp_path, monkeypatch
):
    def score(self, sources, targets):
        return np.array([-4.0, -3.0, -6.0], "float32")

    monkeypatch.setattr(Translator, "score", score)
    path = tmp_path / "scores.txt"
    code, output, _ = run(
        *("score", "--folder", model_folder, "--tsv", data),
        *("--per-token", "--output", path),
    )
    assert (code, output) == (0, "")
    assert path.read_text() == "-1.0000\n-0.5000\n-2.0000\n"


@pytest.mark.parametrize(
    ("line", "name"), [("123456789\tx", "text"), ("x\t123456789", "target")]
)
def test_a_text_that_is_too_long_is_named_and_nothing_is_written(
    refused, model_folder, tmp_path, line, name
):
    path = tmp_path / "data.tsv"
    path.write_text(f"eins\tone\n{line}\n")
    message = refused(
        *("score", "--folder", model_folder, "--tsv", path),
        *("--output", tmp_path / "scores.txt"),
    )
    assert message == (
        f"{path}, pair 2: the {name} takes 10 tokens with its end, and the "
        "model was made for at most 9; shorten or split it."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["data.tsv"]


def test_no_data_are_refused_before_anything_is_loaded(refused, tmp_path):
    message = refused("score", "--folder", tmp_path)
    assert message.startswith("No data. Give --source and --target, --tsv")


def test_a_source_of_which_nothing_is_left_counts_no_tokens(translator):
    class Deaf:
        target_tokenizer = translator.target_tokenizer

        @property
        def source_tokenizer(self):
            return self

        def tokenize(self, texts):
            import tensorflow as tf

            return tf.ragged.constant([[], [4]], dtype="int32")

    pairs = SentencePairs(["?", "eins"], ["one", "five"])
    assert count_tokens(Deaf(), pairs) == [0, 5]
    assert summary([0.0, -10.0], [0, 5]).startswith(
        "2 pairs, 5 tokens, log-probability a token -2.0000"
    )
    assert summary([0.0], [0]).endswith("token 0.0000, perplexity 1.0000")

"""A command line in this process, and a translator in a folder for it."""

import io
import re
import sys

import keras
import pytest

from keras_tfm.cli.main import main
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.tasks.decoding import make_writer
from keras_tfm.tasks.tokenizing import end_rows
from keras_tfm.tasks.tokenizing import pad_rows
from keras_tfm.tasks.tokenizing import token_rows
from keras_tfm.tasks.translation import Translator

GERMAN = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben")
ENGLISH = ("one", "two", "three", "four", "five", "six", "seven")


@pytest.fixture(scope="session")
def pairs():
    """Return some pairs of words."""
    return SentencePairs(GERMAN, ENGLISH, "numbers")


@pytest.fixture(scope="session")
def translator(pairs):
    """Return a tiny translator that has learned nothing."""
    keras.utils.set_random_seed(1)
    return Translator.from_pairs(
        pairs,
        tokenizer="characters",
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=12,
        num_heads=2,
        max_target_length=5,
        source_lengths=(9,),
    )


@pytest.fixture(scope="session")
def model_folder(translator, tmp_path_factory):
    """Return the folder of `translator`."""
    folder = tmp_path_factory.mktemp("models") / "translator"
    translator.save(folder)
    return folder


@pytest.fixture
def run(capfd):
    """Return a function that runs the command line and returns what it says.

    It returns the exit code, the standard output and the standard error.
    """

    def run(*arguments):
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        output, errors = capfd.readouterr()
        # The tests start TensorFlow louder than the command line does, whose
        # silence is tested in processes of their own.
        return code, output, re.sub(r"(?m)^[IWE]0000 .*\n", "", errors)

    return run


@pytest.fixture
def refused(run):
    """Return a function that runs a wrong command and returns its one line."""

    def refused(*arguments):
        code, _, errors = run(*arguments)
        assert code == 2
        assert "Traceback" not in errors
        start = "keras-tfm: error: "
        assert errors.startswith(start)
        assert errors.endswith("\n")
        assert errors.count("\n") == 1
        return errors.removeprefix(start).rstrip("\n")

    return refused


@pytest.fixture
def typed(monkeypatch):
    """Return a function that puts bytes into the standard input."""

    def typed(content):
        stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)

    return typed


@pytest.fixture(scope="session")
def decoded():
    """Return a function that decodes texts without compiling anything.

    It returns for each text the list of its translations and their scores.
    """

    def decoded(translator, texts, generator=None, max_length_factor=None):
        generator = generator or GreedyGenerator(translator.max_target_length)
        rows = end_rows(token_rows(translator.source_tokenizer, texts), 2)
        length = translator.source_lengths[-1]
        write = make_writer(
            translator.model, generator, 0, max_length_factor, n_best=True
        )
        ids = keras.ops.array(pad_rows(rows, len(rows), length, 0))
        return [
            list(
                zip(
                    map(bytes.decode, detokenized(translator, own).numpy()),
                    scores.numpy().tolist(),
                    strict=True,
                )
            )
            for own, scores in zip(*write(ids), strict=True)
        ]

    def detokenized(translator, ids):
        return translator.target_tokenizer.detokenize(ids)

    return decoded


@pytest.fixture
def not_compiled(monkeypatch, decoded):
    """Let every translator decode as `decoded` does, which is quicker."""

    def translate(self, texts):
        found = decoded(self, texts, self.generator, self.max_length_factor)
        return [text for [(text, _)] in found]

    monkeypatch.setattr(Translator, "translate", translate)

"""Translations from arguments, files and the standard input, line by line."""

import gzip
import os
import subprocess
import sys

import pytest

from keras_tfm.cli.translate import check_pairs
from keras_tfm.cli.translate import first_too_long
from keras_tfm.cli.translate import translated
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.generation.beam_search import BeamSearchGenerator
from keras_tfm.generation.length_penalty import GNMTLengthPenalty
from keras_tfm.generation.sampling import SamplingGenerator
from keras_tfm.tasks.hypothesis import Hypothesis


def test_arguments_give_a_line_each_and_an_empty_one_stays_empty(
    run, model_folder, translator
):
    code, output, errors = run(
        "translate", "--folder", model_folder, "eins", "", "zwei"
    )
    one, two = translator.translate(["eins", "zwei"])
    assert (code, errors) == (0, "")
    assert output == f"{one}\n\n{two}\n"


def test_the_standard_input_gives_what_the_arguments_give(
    run, typed, model_folder, translator
):
    typed("eins\r\n\nfünf".encode())
    code, output, errors = run("translate", "--folder", model_folder)
    one, five = translator.translate(["eins", "fünf"])
    assert (code, output, errors) == (0, f"{one}\n\n{five}\n", "")


def test_a_file_gives_a_file(run, model_folder, translator, tmp_path):
    with gzip.open(tmp_path / "in.txt.gz", "wb") as file:
        file.write(b"eins\nzwei\n")
    code, output, errors = run(
        "translate",
        "--folder",
        model_folder,
        "--input",
        tmp_path / "in.txt.gz",
        "--output",
        tmp_path / "out.txt",
    )
    assert (code, output, errors) == (0, "", "")
    expected = translator.translate(["eins", "zwei"])
    written = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert written == "".join(f"{line}\n" for line in expected)


def test_a_file_that_is_there_stays_if_the_translation_fails(
    refused, model_folder, tmp_path
):
    (tmp_path / "in.txt").write_text("eins\n" + "ö" * 9 + "\n", "utf-8")
    (tmp_path / "out.txt").write_text("before", "utf-8")
    message = refused(
        "translate",
        "--folder",
        model_folder,
        "--input",
        tmp_path / "in.txt",
        "--output",
        tmp_path / "out.txt",
    )
    assert message.startswith(f"{tmp_path / 'in.txt'}, line 2: the text takes")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.txt",
        "out.txt",
    ]
    assert (tmp_path / "out.txt").read_text("utf-8") == "before"


def test_a_line_that_is_too_long_is_named_after_those_before_it(
    run, typed, model_folder, translator
):
    typed(b"eins\n123456789\nzwei\n")
    code, output, errors = run("translate", "--folder", model_folder)
    assert code == 2
    assert output == translator.translate(["eins"])[0] + "\n"
    assert errors == (
        "keras-tfm: error: standard input, line 2: the text takes 10 tokens "
        "with its end, and the model was made for at most 9; shorten or split "
        "it.\n"
    )


def test_broken_bytes_are_named_by_their_line(run, typed, model_folder):
    typed(b"eins\nzw\xffei\n")
    code, output, errors = run("translate", "--folder", model_folder)
    assert code == 2
    assert output.count("\n") == 1
    assert errors.startswith(
        "keras-tfm: error: standard input, line 2, byte 3: 0xFF is not valid "
        "UTF-8"
    )


def test_several_translations_have_a_score_and_a_line_each(
    run, model_folder, translator, decoded
):
    code, output, errors = run(
        *("translate", "--folder", model_folder, "--beams", 3, "--nbest", 2),
        *("--length-penalty", 1, "eins", "", "zwei"),
    )
    assert (code, errors) == (0, "")
    search = BeamSearchGenerator(
        5, 3, num_hypotheses=2, length_penalty=GNMTLengthPenalty(1.0)
    )
    one, two = decoded(translator, ["eins", "zwei"], search)
    assert output.splitlines() == [
        f"{score:.4f}\t{text}" for text, score in (*one, ("", 0.0), *two)
    ]


def test_a_sample_is_drawn_with_its_seed_and_no_longer_than_its_source(
    run, model_folder, translator, decoded, not_compiled
):
    code, output, errors = run(
        *("translate", "--folder", model_folder, "--sample"),
        *("--temperature", 3, "--seed", 7, "--min-length", 5),
        *("--max-length-factor", 0.5, "e", "zwei"),
    )
    sampling = SamplingGenerator(5, temperature=3.0, seed=7, min_length=5)
    found = decoded(translator, ["e", "zwei"], sampling, 0.5)
    assert (code, errors) == (0, "")
    assert output.splitlines() == [text for [(text, _)] in found]
    # Half of 2 and of 5 tokens with their end.
    assert [len(line) for line in output.splitlines()] == [1, 3]


def test_a_search_that_cannot_be_is_refused_before_anything_is_loaded(
    refused, tmp_path
):
    message = refused("translate", "--folder", tmp_path, "--nbest", 2, "eins")
    assert message.startswith("--nbest must be at most --beams. Received")


def test_texts_and_a_file_at_once_are_refused(refused, model_folder):
    message = refused(
        "translate", "--folder", model_folder, "eins", "--input", "a.txt"
    )
    assert message == (
        "Give texts or --input, not both. Received: 'eins' and --input a.txt."
    )


def test_an_argument_that_is_too_long_is_named(refused, model_folder):
    message = refused(
        "translate", "--folder", model_folder, "eins", "123456789"
    )
    assert message.startswith("argument 2: the text takes 10 tokens")


def test_a_translation_never_takes_two_lines():
    class Splits:
        source_lengths = (9,)

        @property
        def source_tokenizer(self):
            return self

        def tokenize(self, texts):
            import tensorflow as tf

            return tf.ragged.constant([[4]] * len(texts))

        def translate(self, texts):
            return ["a\nb" for _ in texts]

        def translate_nbest(self, texts):
            return [[Hypothesis("a\nb", -1.5)] * 2 for _ in texts]

    chunks = [["x"], ["y"]]
    assert list(translated(Splits(), chunks, "line")) == [["a b"], ["a b"]]
    [first, _] = translated(Splits(), chunks, "line", several=True)
    assert first == ["-1.5000\ta b"] * 2


def test_the_first_text_that_is_too_long_is_found(translator):
    assert first_too_long(translator, ["12345678"]) == (1, None)
    place, problem = first_too_long(translator, ["a", "123456789", "b" * 50])
    assert place == 1
    assert "takes 10 tokens" in problem


def test_pairs_that_are_too_long_are_named(translator):
    pairs = SentencePairs(["a", "123456789"], ["b", "c"], "mine.tsv")
    with pytest.raises(ValueError, match=r"mine\.tsv, pair 2: the text takes"):
        check_pairs(translator, pairs)
    pairs = SentencePairs(["b", "c"], ["a", "123456789"], "mine.tsv")
    check_pairs(translator, pairs)
    with pytest.raises(ValueError, match="pair 2: the target takes 10 tokens"):
        check_pairs(translator, pairs, targets=True)


def test_a_line_is_answered_before_the_next_one_is_typed(model_folder):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "keras_tfm", "translate"),
            *("--folder", str(model_folder)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        answers = []
        for line in (b"eins\n", b"\n", b"zwei\n"):
            process.stdin.write(line)
            process.stdin.flush()
            answers.append(process.stdout.readline())
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert all(answer.endswith(b"\n") for answer in answers)
    assert answers[1] == b"\n"
    assert (rest, errors, process.returncode) == (b"", b"", 0)

"""Scores with what is needed to repeat them."""

import pytest

from keras_tfm.generation.sampling import SamplingGenerator


@pytest.fixture
def data(tmp_path, translator):
    """Return a file whose targets are what the translator writes."""
    sources = ["eins", "zwei", "drei"]
    targets = [text or "x" for text in translator.translate(sources)]
    path = tmp_path / "data.tsv"
    path.write_text(
        "".join(
            f"{source}\t{target}\n"
            for source, target in zip(sources, targets, strict=True)
        ),
        encoding="utf-8",
    )
    return path


def test_bleu_and_chrf_come_with_their_signatures(run, model_folder, data):
    code, output, errors = run(
        *("evaluate", "--folder", model_folder, "--tsv", data),
        *("--tokenize", "char", "--lowercase"),
    )
    assert (code, errors) == (0, "")
    pairs, bleu, chrf = output.splitlines()
    assert pairs == f"3 pairs of {data}"
    assert bleu.startswith("BLEU = ")
    assert "case:lc" in bleu
    assert "tok:char" in bleu
    assert chrf.startswith("chrF = ")


def test_equal_texts_are_counted(run, model_folder, data):
    code, output, _ = run(
        *("evaluate", "--folder", model_folder, "--tsv", data),
        *("--metric", "exact"),
    )
    assert code == 0
    assert output.splitlines()[1] == "exact match = 100.00"


def test_another_search_gives_what_it_finds(
    run, model_folder, translator, decoded, not_compiled, tmp_path
):
    sources = ["eins", "zwei", "drei"]
    greedy, sampled = (
        [text for [(text, _)] in decoded(translator, sources, generator)]
        for generator in (None, SamplingGenerator(5, seed=3))
    )
    path = tmp_path / "data.tsv"
    path.write_text(
        "".join(
            f"{source}\t{target}\n"
            for source, target in zip(sources, sampled, strict=True)
        ),
        encoding="utf-8",
    )
    assert sampled != greedy
    code, output, _ = run(
        *("evaluate", "--folder", model_folder, "--tsv", path),
        *("--metric", "exact", "--sample", "--seed", 3),
    )
    assert code == 0
    assert output.splitlines()[1] == "exact match = 100.00"


def test_a_search_that_cannot_be_is_refused(refused, tmp_path):
    message = refused(
        *("evaluate", "--folder", tmp_path, "--tsv", "a.tsv", "--top-k", 3)
    )
    assert message.startswith("--top-k needs --sample")


def test_a_source_that_is_too_long_is_named(refused, model_folder, tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("eins\tone\n123456789\tlong\n")
    message = refused("evaluate", "--folder", model_folder, "--tsv", path)
    assert message.startswith(f"{path}, pair 2: the text takes 10 tokens")


def test_no_data_are_refused_before_anything_is_loaded(refused, tmp_path):
    message = refused("evaluate", "--folder", tmp_path)
    assert message.startswith("No data. Give --source and --target, --tsv")

"""A training says what it is about to do."""

from keras_tfm.cli.summary import ending
from keras_tfm.cli.summary import print_summary
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.translation import Translator


def summary(capsys, translator, pairs, **settings):
    settings = TrainingSettings(tokens_per_batch=16, **settings)
    batches = translator.batches(pairs, settings)
    print_summary(
        translator,
        batches,
        settings,
        data="numbers.tsv",
        end=ending(100, 2),
        device="an abacus",
    )
    lines = capsys.readouterr().out.splitlines()
    cells = [line.strip("│").split("│") for line in lines if "│" in line]
    return batches, {name.strip(): fact.strip() for name, fact in cells}


def test_data_model_and_shapes_are_told(capsys, translator, pairs):
    batches, facts = summary(
        capsys, translator, pairs, max_shapes=2, max_sequence_length=6
    )
    assert facts["data"] == "numbers.tsv"
    assert facts["pairs"] == "6 (1 are too long and left out)"
    size = translator.source_tokenizer.vocabulary_size
    assert facts["vocabulary"] == f"{size} entries for both sides"
    parameters = translator.model.count_params()
    assert facts["model"] == (
        f"{parameters:,} parameters: 1+1 layers, hidden_dim 8, "
        "intermediate_dim 12, 2 heads"
    )
    rows, source, target = batches.shapes[0]
    assert facts["batches"].startswith(f"{rows} rows × ({source} + {target})")
    assert facts["padding"] == f"{batches.padding_share:.1%} of all positions"
    assert facts["steps"] == (
        f"100, or as many as 2 minutes allow; {batches.steps_per_epoch} in an "
        "epoch"
    )
    assert facts["learning rate"] == (
        "rises to 0.002 in 1,000 steps, then falls with 1/sqrt(step)"
    )
    assert facts["device"] == "an abacus"
    assert facts["XLA"].startswith("compiles")
    assert "languages" not in facts


def test_one_shape_is_one_program(capsys, translator, pairs):
    batches, facts = summary(capsys, translator, pairs, max_shapes=1)
    assert len(batches.shapes) == 1
    assert facts["XLA"] == "compiles 1 program, for the one shape"


def test_two_vocabularies_and_a_cosine_are_told(capsys, pairs):
    translator = Translator.from_pairs(
        pairs,
        tokenizer="characters",
        joint=False,
        num_layers=1,
        hidden_dim=4,
        intermediate_dim=4,
        num_heads=1,
    )
    _, facts = summary(
        capsys, translator, pairs, warmup_steps=5, decay_steps=50
    )
    assert facts["vocabulary"] == (
        f"{translator.source_tokenizer.vocabulary_size} entries for the "
        f"source, {translator.target_tokenizer.vocabulary_size} for the target"
    )
    assert facts["learning rate"].endswith("along a cosine until step 50")

"""A training says what it is about to do."""

from keras_tfm.cli.summary import ending
from keras_tfm.cli.summary import print_summary
from keras_tfm.cli.summary import validating
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.translation import Translator


def summary(capsys, translator, pairs, batching="buckets", **settings):
    settings = TrainingSettings(batching, tokens_per_batch=16, **settings)
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
    assert facts["optimizer"] == "Adam, beta_2 0.98, label smoothing 0.1"
    absent = {"languages", "subwords", "average", "validation"}
    assert not absent & {*facts}


def test_packed_rows_are_told(capsys, translator, pairs):
    batches, facts = summary(capsys, translator, pairs, "packed")
    ((rows, source, target),) = batches.shapes
    assert facts["batches"] == (
        f"{rows} rows × ({source} + {target}); several pairs a row"
    )
    assert facts["padding"] == f"{batches.padding_share:.1%} of all positions"
    assert facts["XLA"] == "compiles 1 program, for the one shape"


def test_batches_that_make_one_update_are_told(capsys, translator, pairs):
    batches, facts = summary(
        capsys, translator, pairs, "packed", accumulation_steps=3
    )
    assert facts["batches"].endswith("; 3 batches make an update")
    assert batches.steps_per_epoch // 3 == 1
    assert facts["steps"].endswith("; 1 in an epoch")


def test_the_optimizer_and_the_average_are_told(capsys, translator, pairs):
    _, facts = summary(
        *(capsys, translator, pairs),
        optimizer="muon",
        beta_2=0.95,
        weight_decay=0.01,
        clip_norm=2.0,
        label_smoothing=0.0,
        average_last=5,
    )
    assert facts["optimizer"] == (
        "Muon, beta_2 0.95, weight decay 0.01, gradients up to norm 2"
    )
    assert facts["average"] == "of the last 5 snapshots, one an epoch"
    _, facts = summary(
        capsys, translator, pairs, average_last=5, snapshot_steps=1000
    )
    assert facts["average"] == "of the last 5 snapshots, one every 1,000 steps"
    _, facts = summary(capsys, translator, pairs, ema_momentum=0.999)
    assert facts["average"] == "moving, with momentum 0.999"


def test_subwords_that_vary_are_told(capsys, pairs):
    translator = Translator.from_pairs(
        pairs,
        vocabulary_size=282,
        num_layers=1,
        hidden_dim=4,
        intermediate_dim=4,
        num_heads=1,
    )
    _, facts = summary(capsys, translator, pairs, "packed", subword_dropout=0.1)
    assert facts["subwords"] == (
        "10.0% of the merges left out, other ones in each epoch"
    )


def test_pairs_that_are_turned_are_told(capsys, translator, pairs):
    _, facts = summary(
        capsys, translator, pairs, "packed", bidirectional_epochs=1
    )
    assert facts["directions"] == (
        "both until epoch 1 has ended, then from source to target alone"
    )
    _, facts = summary(capsys, translator, pairs, "packed")
    assert "directions" not in facts


def test_a_validation_is_told(capsys, translator, pairs):
    settings = TrainingSettings(tokens_per_batch=32)
    print_summary(
        translator,
        translator.batches(pairs, settings),
        settings,
        data="numbers.tsv",
        end="7",
        device="an abacus",
        validation="7 pairs, at the end",
    )
    assert "7 pairs, at the end" in capsys.readouterr().out
    assert validating(1014, {"every_steps": 1500, "patience": 3}, "BLEU") == (
        "1,014 pairs, every 1,500 steps; the weights that are best by BLEU "
        "stay; stops after 3 in a row that are not better"
    )
    assert validating(
        7, {"every_steps": None, "patience": None}, "loss"
    ).startswith("7 pairs, every epoch; ")


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

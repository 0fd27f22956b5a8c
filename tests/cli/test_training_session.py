"""A training from its begin to its end, on pairs of words."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from keras_tfm.cli.main import main
from keras_tfm.cli.training_folder import TrainingPlan
from keras_tfm.cli.training_session import source_lengths
from keras_tfm.tasks.scores import Score
from keras_tfm.tasks.translation import Translator
from keras_tfm.training.training_log_file import append_row

slow = pytest.mark.slow

OPTIONS = (
    *("--tokenizer", "characters", "--num-layers", "1", "--hidden-dim", "8"),
    *("--intermediate-dim", "12", "--num-heads", "2", "--dropout", "0"),
    *("--tokens-per-batch", "64", "--max-shapes", "1", "--warmup-steps", "2"),
    *("--max-sequence-length", "10", "--ema-momentum", "0.9"),
)


@pytest.fixture(scope="module")
def data(pairs, tmp_path_factory):
    """Return a file of pairs."""
    path = tmp_path_factory.mktemp("data") / "numbers.tsv"
    lines = [f"{source}\t{target}\n" for source, target in pairs]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """Return the folder of a training of three steps."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    code = main(
        [
            *("train", "--tsv", str(data), "--folder", str(folder)),
            *("--validation-tsv", str(data), "--steps", "3", *OPTIONS),
        ]
    )
    assert code == 0
    return folder


@pytest.fixture
def fitted(monkeypatch):
    """Let a training be a log of three validations, and return its arguments.

    Nothing is compiled, and a translator's scores are those of its best step.
    """
    calls = []

    def fit(self, batches, settings, *, folder, validation, **arguments):
        calls.append({"validation": validation, **arguments})
        for step, score in ((100, 1.5), (200, 3.25), (300, 2.0)):
            result = {"step": step, "validation_bleu": score}
            append_row(
                folder / "training_log.csv", {"learning_rate": 0.1, **result}
            )
            validation.on_result(result)
        return {"loss": 2.5, "steps": 300}

    monkeypatch.setattr(Translator, "fit", fit)
    monkeypatch.setattr(
        Translator, "evaluate", lambda *_, **__: [Score("BLEU", 3.25)]
    )
    return calls


@pytest.fixture
def trained(finished, tmp_path):
    """Return a copy of the folder of a training of three steps."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def test_what_a_validation_finds_is_told_and_drawn(run, fitted, data, tmp_path):
    folder = tmp_path / "run"
    code, output, errors = run(
        *("train", "--tsv", data, "--folder", folder, *OPTIONS),
        *("--validation-tsv", data, "--validation-steps", "100"),
        *("--patience", "1", "--max-minutes", "9", "--tensorboard"),
        *("--tokenize", "zh", "--lowercase"),
    )
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert lines[-9:] == [
        "step 100 · validation BLEU 1.50 (best so far)",
        "step 200 · validation BLEU 3.25 (best so far)",
        "step 300 · validation BLEU 2.00",
        "Nothing better in the last 1 validation: it ends here.",
        "Best was step 200, with validation BLEU 3.25: the translator has its "
        "weights.",
        f"Saved the translator after step 300 to {folder}.",
        "validation BLEU = 3.25",
        f"The learning curves are in {folder}/training_log.csv, as a picture "
        f"in {folder}/curves.png.",
        f'Use it: keras-tfm translate --folder {folder} "..."',
    ]
    assert "7 pairs, every 100 steps; the weights that are best" in output
    assert (folder / "curves.png").is_file()
    ((arguments),) = fitted
    assert arguments["tensorboard"]
    assert arguments["checkpoint_minutes"] == 2
    plan = arguments["validation"]
    assert plan.pairs.sources[0] == "eins"
    assert (plan.metric, plan.tokenize, plan.lowercase) == ("bleu", "zh", True)
    assert (plan.every_steps, plan.patience) == (100, 1)
    assert plan.monitor == "validation_bleu"


def test_the_recipe_in_the_folder_repeats_the_training(
    run, fitted, data, tmp_path
):
    first, second = tmp_path / "first", tmp_path / "second"
    run(
        *("train", "--tsv", data, "--folder", first, *OPTIONS),
        *("--validation-tsv", data, "--patience", "1", "--steps", "300"),
    )
    recipe = first / "recipe.yaml"
    assert run("train", recipe, "--folder", second)[0] == 0
    assert TrainingPlan.load(second) == TrainingPlan.load(first)
    # But for the command at the top.
    assert [
        line
        for line in (second / "recipe.yaml").read_text().splitlines()
        if "keras-tfm train" not in line
    ] == [
        line
        for line in recipe.read_text().splitlines()
        if "keras-tfm train" not in line
    ]
    models = [Translator.load(folder).model for folder in (first, second)]
    assert models[0].arguments["hidden_dim"] == 8
    assert models[0].arguments == models[1].arguments
    # A resumption may have another end.
    run("train", "--resume", "--folder", second, "--steps", "400")
    assert "\nsteps: 400\n" in (second / "recipe.yaml").read_text()


def test_a_validation_by_loss_translates_nothing(run, fitted, data, tmp_path):
    _, output, _ = run(
        *("train", "--tsv", data, "--folder", tmp_path / "run", *OPTIONS),
        *("--validation-tsv", data, "--validation-steps", "100"),
        *("--metric", "loss", "--steps", "300"),
    )
    assert "validation BLEU =" not in output
    assert fitted[0]["validation"].monitor == "validation_loss"


@slow
def test_a_training_leaves_a_translator(trained):
    assert sorted(path.name for path in trained.iterdir()) == [
        "checkpoint.npz",
        "model.keras",
        "recipe.yaml",
        "source_tokenizer",
        "training.json",
        "translator.json",
    ]
    translator = Translator.load(trained)
    assert translator.source_lengths == (10,)
    assert len(translator.translate(["eins", "zwei"])) == 2


@slow
def test_a_training_goes_on_where_it_stopped(run, trained):
    code, output, errors = run(
        "train", "--resume", "--folder", trained, "--steps", "5"
    )
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0].strip() == "Training"
    assert any(line.startswith("step 5/5 ") for line in lines)
    assert f"Saved the translator after step 5 to {trained}." in lines
    scores = [line[:15] for line in lines if line.startswith("validation")]
    assert scores == ["validation BLEU", "validation chrF"]
    assert lines[-1] == f'Use it: keras-tfm translate --folder {trained} "..."'


@slow
def test_a_finished_training_has_nothing_to_do(run, trained):
    before = Translator.load(trained).model.get_weights()
    code, _, errors = run("train", "--resume", "--folder", trained)
    assert code == 0
    assert errors == (
        "keras-tfm: step 3 was reached before: nothing to train.\n"
    )
    after = Translator.load(trained).model.get_weights()
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


@slow
def test_other_pairs_are_not_taken_for_the_same(run, refused, trained, data):
    content = data.read_text(encoding="utf-8")
    data.write_text(content.replace("seven", "eight"), encoding="utf-8")
    try:
        message = refused("train", "--resume", "--folder", trained)
    finally:
        data.write_text(content, encoding="utf-8")
    assert message.startswith(f"{data}: the pairs have changed since")


@slow
def test_wrong_validation_is_told_before_anything_is_replaced(
    refused, trained, data, tmp_path
):
    (tmp_path / "long.tsv").write_text("eins\tone\n1234567890\tlong\n")
    before = {p: p.read_bytes() for p in trained.iterdir() if p.is_file()}
    message = refused(
        *("train", "--tsv", data, "--folder", trained, "--overwrite"),
        *("--validation-tsv", tmp_path / "long.tsv", "--steps", "1", *OPTIONS),
    )
    assert message.startswith(
        f"{tmp_path / 'long.tsv'}, pair 2: the text takes 11 tokens"
    )
    assert before == {p: p.read_bytes() for p in before}


@slow
def test_an_unfinished_training_cannot_translate_yet(refused, trained):
    (trained / "model.keras").unlink()
    message = refused("translate", "--folder", trained, "eins")
    assert message.startswith(f"The training in {trained} has not finished")
    assert "--resume" in message


@slow
def test_a_signal_leaves_a_checkpoint_and_says_how_to_go_on(data, tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "keras_tfm", "train", "--tsv", str(data)),
            *("--folder", str(folder), "--max-minutes", "9", *OPTIONS),
            *("--checkpoint-minutes", "0.001"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        deadline = time.monotonic() + 120
        while not (folder / "checkpoint.npz").exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    first, second = errors.splitlines()
    assert first.startswith("keras-tfm: stopping after this step")
    assert re.fullmatch(
        r"keras-tfm: stopped after step [\d,]+\. Go on with: keras-tfm train "
        rf"--resume --folder {re.escape(str(folder))}",
        second,
    )
    assert not (folder / "model.keras").exists()


@slow
def test_a_training_is_validated_and_stops_where_it_stalls(run, data, tmp_path):
    folder = tmp_path / "run"
    code, output, errors = run(
        *("train", "--tsv", data, "--folder", folder, *OPTIONS[:-2]),
        *("--validation-tsv", data, "--validation-steps", "2"),
        *("--metric", "loss", "--patience", "1", "--steps", "60"),
        # So fast that nothing is learnt: it gets worse at once.
        *("--peak-rate", "100", "--average-last", "2", "--tensorboard"),
        *("--snapshot-steps", "2", "--accumulation-steps", "2"),
    )
    assert (code, errors) == (0, "")
    assert "Nothing better in the last 1 validation: it ends here." in output
    (best,) = re.findall(r"Best was step (\d+), with validation loss", output)
    stop = int(best) + 2
    assert f"Saved the translator after step {stop} to {folder}." in output
    assert f"\nstep {stop} · validation loss " in output
    assert f"\nstep {stop}/60 · " in output
    names = {path.name.partition("tfevents")[0] for path in folder.iterdir()}
    assert names >= {
        *("best", "curves.png", "events.out.", "recipe.yaml", "snapshots"),
        "training_log.csv",
    }
    _, _, errors = run("train", "--resume", "--folder", folder)
    assert errors == (
        f"keras-tfm: step {stop} was reached before: nothing to train.\n"
    )


@pytest.mark.parametrize(
    ("longest", "lengths"),
    [(1, (1,)), (16, (16,)), (17, (16, 17)), (128, (16, 32, 64, 128))],
)
def test_sources_are_padded_to_few_lengths(longest, lengths):
    assert source_lengths(longest) == lengths

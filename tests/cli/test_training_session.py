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
from keras_tfm.cli.training_session import source_lengths
from keras_tfm.tasks.translation import Translator

pytestmark = pytest.mark.slow

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
def trained(finished, tmp_path):
    """Return a copy of the folder of a training of three steps."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def test_a_training_leaves_a_translator(trained):
    assert sorted(path.name for path in trained.iterdir()) == [
        "checkpoint.npz",
        "model.keras",
        "source_tokenizer",
        "training.json",
        "translator.json",
    ]
    translator = Translator.load(trained)
    assert translator.source_lengths == (10,)
    assert len(translator.translate(["eins", "zwei"])) == 2


def test_a_training_goes_on_where_it_stopped(run, trained):
    code, output, errors = run(
        "train", "--resume", "--folder", trained, "--steps", "5"
    )
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0].strip() == "Training"
    assert any(line.startswith("step 5/5 ") for line in lines)
    assert f"Saved the translator after step 5 to {trained}." in lines
    assert [line[:15] for line in lines if "validation" in line] == [
        "validation BLEU",
        "validation chrF",
    ]
    assert lines[-1] == f'Use it: keras-tfm translate --folder {trained} "..."'


def test_a_finished_training_has_nothing_to_do(run, trained):
    before = Translator.load(trained).model.get_weights()
    code, _, errors = run("train", "--resume", "--folder", trained)
    assert code == 0
    assert errors == (
        "keras-tfm: step 3 was reached before: nothing to train.\n"
    )
    after = Translator.load(trained).model.get_weights()
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_other_pairs_are_not_taken_for_the_same(run, refused, trained, data):
    content = data.read_text(encoding="utf-8")
    data.write_text(content.replace("seven", "eight"), encoding="utf-8")
    try:
        message = refused("train", "--resume", "--folder", trained)
    finally:
        data.write_text(content, encoding="utf-8")
    assert message.startswith(f"{data}: the pairs have changed since")


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


def test_an_unfinished_training_cannot_translate_yet(refused, trained):
    (trained / "model.keras").unlink()
    message = refused("translate", "--folder", trained, "eins")
    assert message.startswith(f"The training in {trained} has not finished")
    assert "--resume" in message


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


@pytest.mark.parametrize(
    ("longest", "lengths"),
    [(1, (1,)), (16, (16,)), (17, (16, 17)), (128, (16, 32, 64, 128))],
)
def test_sources_are_padded_to_few_lengths(longest, lengths):
    assert source_lengths(longest) == lengths

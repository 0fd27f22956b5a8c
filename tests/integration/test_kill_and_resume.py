"""A training that was killed goes on, and ends as if nothing had happened."""

import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from keras_tfm.cli.main import main
from keras_tfm.tasks.translation import Translator
from keras_tfm.training.training_log_file import read_training_log

pytestmark = pytest.mark.slow

STEPS = 230
OPTIONS = (
    *("--vocabulary-size", "290", "--num-layers", "1", "--hidden-dim", "8"),
    *("--intermediate-dim", "12", "--num-heads", "2", "--dropout", "0.1"),
    *("--tokens-per-batch", "64", "--warmup-steps", "9", "--seed", "3"),
    *("--max-sequence-length", "20", "--subword-dropout", "0.2"),
    *("--average-last", "3", "--snapshot-steps", "7", "--metric", "loss"),
    *("--validation-steps", "20", "--steps", str(STEPS)),
    *("--accumulation-steps", "2", "--checkpoint-minutes", "0.001"),
    *("--bidirectional-epochs", "30"),
)
WORDS = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht")
# What is the same whenever it is measured.
COLUMNS = ("step", "learning_rate", "validation_loss", "validation_accuracy")


def killed_once(arguments, folder, after):
    """Run until a checkpoint is written, and a moment more, then `kill -9`."""
    checkpoint = folder / "checkpoint.npz"
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_tfm", *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        deadline = time.monotonic() + 120
        while not (
            checkpoint.exists() and checkpoint.stat().st_mtime_ns > before
        ):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(after)
        assert process.poll() is None, "it ended before it could be killed"
    finally:
        process.kill()
        process.wait()


def same_archives(folder, other, name):
    files = sorted(path.name for path in (folder / name).iterdir())
    assert files == sorted(path.name for path in (other / name).iterdir())
    for file in files:
        with (
            np.load(folder / name / file) as one,
            np.load(other / name / file) as two,
        ):
            assert set(one.files) == set(two.files)
            for key in one.files:
                np.testing.assert_array_equal(one[key], two[key], err_msg=key)


def test_a_killed_training_ends_like_one_that_was_not(tmp_path):
    data = tmp_path / "data.tsv"
    lines = [
        f"{word} {other}\t{other[::-1]} {word[::-1]}\n"
        for word in WORDS
        for other in WORDS
    ]
    data.write_text("".join(lines), encoding="utf-8")
    few = tmp_path / "few.tsv"
    few.write_text("".join(lines[::7]), encoding="utf-8")
    train = ("train", "--tsv", str(data), "--validation-tsv", str(few))
    train += (*OPTIONS, "--folder")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    resume = ("train", "--resume", "--folder", str(killed))
    moments = random.Random(5)
    killed_once((*train, str(killed)), killed, moments.uniform(0, 0.2))
    for _ in range(2):
        killed_once(resume, killed, moments.uniform(0, 0.2))
    assert not (killed / "model.keras").exists()
    assert main([*resume]) == 0
    assert main([*train, str(whole)]) == 0
    for resumed, expected in zip(
        Translator.load(killed).model.get_weights(),
        Translator.load(whole).model.get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(resumed, expected)
    for name in ("snapshots", "best"):
        same_archives(killed, whole, name)
    logs = [read_training_log(f / "training_log.csv") for f in (killed, whole)]
    for column in COLUMNS:
        assert logs[0][column] == logs[1][column], column
    np.testing.assert_allclose(
        *(np.array(log["loss"], float) for log in logs), rtol=1e-5
    )

"""A training that was killed goes on, and ends as if nothing had happened."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from keras_tfm.cli.main import main
from keras_tfm.tasks.translation import Translator

pytestmark = pytest.mark.slow

STEPS = "400"
OPTIONS = (
    *("--tokenizer", "characters", "--num-layers", "1", "--hidden-dim", "8"),
    *("--intermediate-dim", "12", "--num-heads", "2", "--dropout", "0.1"),
    *("--tokens-per-batch", "64", "--max-shapes", "1", "--warmup-steps", "9"),
    *("--max-sequence-length", "10", "--ema-momentum", "0.9", "--seed", "3"),
    *("--steps", STEPS, "--checkpoint-minutes", "0.001"),
)
WORDS = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht")


def test_a_killed_training_ends_like_one_that_was_not(tmp_path):
    data = tmp_path / "data.tsv"
    lines = [f"{word}\t{word[::-1]}\n" for word in WORDS * 5]
    data.write_text("".join(lines), encoding="utf-8")
    train = ("train", "--tsv", str(data), *OPTIONS, "--folder")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_tfm", *train, str(killed)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        deadline = time.monotonic() + 120
        while not (killed / "checkpoint.npz").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert not (killed / "model.keras").exists()
    assert main(["train", "--resume", "--folder", str(killed)]) == 0
    assert main([*train, str(whole)]) == 0
    for resumed, expected in zip(
        Translator.load(killed).model.get_weights(),
        Translator.load(whole).model.get_weights(),
        strict=True,
    ):
        np.testing.assert_allclose(resumed, expected, rtol=1e-4, atol=1e-6)

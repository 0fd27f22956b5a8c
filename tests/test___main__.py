"""`python -m keras_tfm` is the command line."""

import os
import subprocess
import sys

import keras_tfm


def test_the_module_runs_the_commands():
    result = subprocess.run(
        [sys.executable, "-m", "keras_tfm", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 0
    assert result.stdout == f"keras-tfm {keras_tfm.__version__}\n"
    assert result.stderr == ""

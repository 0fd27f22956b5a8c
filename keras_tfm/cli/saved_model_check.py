"""Call a SavedModel in a new process that has nothing but TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from keras_tfm.cli.tensorflow_setup import QUIET_ENVIRONMENT

# It reads a list of texts and writes what the model makes of them.
_PROGRAM = """\
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
texts = json.loads(sys.stdin.buffer.read())
output = model.signatures["serving_default"](text=tf.constant(texts))
answers = [text.decode() for text in output["text"].numpy()]
sys.stdout.buffer.write(json.dumps(answers).encode())
"""
_PROGRAM_WITH_TEXT = "import tensorflow_text\n" + _PROGRAM


def answers_in_new_process(
    folder: Path, texts: Sequence[str], tensorflow_text: bool = False
) -> list[str]:
    """Load a SavedModel in a new process and let it translate.

    Args:
        folder: Path of the SavedModel.
        texts: List of strings.
        tensorflow_text: Boolean. Whether to import `tensorflow_text` too.
            Defaults to `False`.

    Returns:
        One translation for each text.

    Raises:
        RuntimeError: If the process fails; the message is its last line.
    """
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            _PROGRAM_WITH_TEXT if tensorflow_text else _PROGRAM,
            str(folder),
        ],
        input=json.dumps(list(texts)).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, **QUIET_ENVIRONMENT},
    )
    if result.returncode:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {result.returncode}"
        raise RuntimeError(
            f"The SavedModel {folder} cannot be used in a new process: {reason}"
        )
    return json.loads(result.stdout)

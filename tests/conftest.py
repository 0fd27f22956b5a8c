"""What every test gets: a fixed seed, its own dtype policy, fresh processes."""

import functools
import os
import pathlib
import subprocess
import sys
import textwrap

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Compiling takes most of the time, and each program runs a few times: optimise
# little. The slow tests, which train, are run with XLA as it is.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import hypothesis
import keras
import pytest

pytest.register_assert_rewrite("layer_checks")

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEED = 20170612

# No deadline: the first call of a traced function compiles it.
hypothesis.settings.register_profile(
    "keras_tfm", deadline=None, derandomize=True, database=None
)
hypothesis.settings.load_profile("keras_tfm")


@pytest.fixture(autouse=True)
def fixed_seed():
    """Let each test draw the same numbers, alone or after others."""
    keras.utils.set_random_seed(SEED)


@pytest.fixture(autouse=True)
def restored_dtype_policy():
    """Undo what a test does to the global dtype policy."""
    policy = keras.config.dtype_policy()
    floatx = keras.config.floatx()
    yield
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)


def run_snippet(folder, snippet, *arguments, env=None, timeout=600):
    """Run a snippet in a new Python process and return what it prints.

    The process starts in `folder`, sees this checkout of keras_tfm and the
    backend of this test run, finds further arguments in `sys.argv[1:]`, and
    must end without an error.
    """
    python_path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(snippet),
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        timeout=timeout,
        check=False,
        env={
            **os.environ,
            "KERAS_BACKEND": keras.backend.backend(),
            "PYTHONIOENCODING": "utf-8",
            "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
            **(env or {}),
        },
    )
    if result.returncode:
        pytest.fail(
            f"The fresh process ended with {result.returncode}.\n"
            f"--- stdout\n{result.stdout}\n--- stderr\n{result.stderr}",
            pytrace=False,
        )
    return result.stdout


@pytest.fixture
def fresh_process(tmp_path):
    """Return `run_snippet` for processes that start in `tmp_path`."""
    return functools.partial(run_snippet, tmp_path)


@pytest.fixture(scope="session")
def shared_process(tmp_path_factory):
    """Return `run_snippet` for processes that serve several tests."""
    return functools.partial(run_snippet, tmp_path_factory.mktemp("process"))

"""Importing keras_tfm is cheap, and brings in nothing heavy."""

import json

import pytest

# Seconds on top of `import keras`. What is measured is well below, so that a
# busy machine does not fail the test; the best of a few tries counts.
BUDGET = 0.3
TRIES = 3
# Shares of what `import keras` takes in the same process, for any machine.
TIME_SHARE = 0.3
MEMORY_SHARE = 0.1

HEAVY = {
    "babel",
    "keras_hub",
    "matplotlib",
    "sacrebleu",
    "sentencepiece",
    "tensorflow_datasets",
    "tensorflow_text",
    "torch",
    "transformers",
    "typer",
}

MEASURE = """
    import json
    import pathlib
    import sys
    import time

    def measure():
        # Not `ru_maxrss`: a process takes over that of its parent.
        status = pathlib.Path("/proc/self/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
        return time.perf_counter(), peak, set(sys.modules)

    start = measure()
    import keras

    before = measure()
    import keras_tfm

    after = measure()
    print(json.dumps({
        "keras_seconds": before[0] - start[0],
        "seconds": after[0] - before[0],
        "keras_mib": before[1] - start[1],
        "mib": after[1] - before[1],
        "modules": sorted(after[2] - before[2]),
    }))
"""


def measure(fresh_process):
    return json.loads(fresh_process(MEASURE).splitlines()[-1])


@pytest.fixture(scope="module")
def measured():
    """Return the list of what the processes so far have found."""
    return []


@pytest.fixture
def modules(measured, fresh_process):
    """Return the modules that an import of keras_tfm brings in."""
    if not measured:
        measured.append(measure(fresh_process))
    return measured[0]["modules"]


def seconds(measured):
    return [found["seconds"] for found in measured]


def test_importing_costs_little_more_than_importing_keras(
    measured, fresh_process
):
    # One that is quick enough tells as much as the best of all.
    while len(measured) < TRIES and min(seconds(measured), default=9) > BUDGET:
        measured.append(measure(fresh_process))
    assert min(seconds(measured)) <= BUDGET, seconds(measured)
    shares = [found["seconds"] / found["keras_seconds"] for found in measured]
    assert min(shares) <= TIME_SHARE, shares
    shares = [found["mib"] / found["keras_mib"] for found in measured]
    assert min(shares) <= MEMORY_SHARE, shares


def test_importing_brings_in_no_heavy_package(modules):
    # Keras itself may load some of them (matplotlib): only what is new counts.
    assert "keras_tfm" in modules
    loaded = {name.partition(".")[0] for name in modules}
    assert not loaded & HEAVY


def test_importing_leaves_the_lazy_packages_alone(modules):
    lazy = {f"keras_tfm.{name}" for name in ("cli", "data", "tasks", "text")}
    assert not lazy & set(modules)


def test_the_jax_backend_does_without_tensorflow(fresh_process):
    snippet = """
        import sys

        import keras_tfm

        print(keras_tfm.layers.__name__, "tensorflow" in sys.modules)
    """
    output = fresh_process(snippet, env={"KERAS_BACKEND": "jax"})
    assert output.splitlines()[-1] == "keras_tfm.layers False"

"""Importing keras_tfm is cheap, and brings in nothing heavy."""

import json

# Seconds on top of `import keras`. What is measured is well below, so that a
# busy machine does not fail the test; the best of a few tries counts.
BUDGET = 0.3
TRIES = 3

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
    import sys
    import time

    import keras

    before = set(sys.modules)
    start = time.perf_counter()
    import keras_tfm

    seconds = time.perf_counter() - start
    modules = sorted(set(sys.modules) - before)
    print(json.dumps({"seconds": seconds, "modules": modules}))
"""


def measure(fresh_process):
    return json.loads(fresh_process(MEASURE).splitlines()[-1])


def test_importing_costs_little_more_than_importing_keras(fresh_process):
    tries = [measure(fresh_process)["seconds"] for _ in range(TRIES)]
    assert min(tries) <= BUDGET, f"import keras_tfm took {tries} seconds"


def test_importing_brings_in_no_heavy_package(fresh_process):
    # Keras itself may load some of them (matplotlib): only what is new counts.
    modules = measure(fresh_process)["modules"]
    assert "keras_tfm" in modules
    loaded = {name.partition(".")[0] for name in modules}
    assert not loaded & HEAVY


def test_importing_leaves_the_lazy_packages_alone(fresh_process):
    modules = measure(fresh_process)["modules"]
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

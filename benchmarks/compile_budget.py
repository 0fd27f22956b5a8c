"""How many programs XLA compiles for a training, and what they cost.

    python benchmarks/compile_budget.py --output compile_budget.json

The same pairs of random ids are trained on in three ways: packed, in buckets,
and every batch padded to its own longest row, as an input pipeline without a
plan does. Each way has a new process, where XLA writes down its programs, which
are counted. Warnings may be one more than programs: batches are read ahead, the
last of them for no step. A last row exports a small translator and counts what
the SavedModel compiles for texts of many sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

WAYS = ("packed", "buckets", "every length")
_ROOT = Path(__file__).resolve().parents[1]
_SAVED_MODEL = "SavedModel"
# What a program of a training step, and of a decoder, is called.
_NAMES = ("one_step_on_data", "train_step", "write", "score", "encode")


def main() -> None:
    """Run every way in a new process and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden-dim", type=int, default=64)
    parser.add_argument("--tokens-per-batch", type=int, default=512)
    parser.add_argument(
        "--ways", nargs="+", choices=(*WAYS, _SAVED_MODEL), default=None
    )
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        sys.path.insert(0, str(_ROOT))
        print(json.dumps(measure(**json.loads(arguments.case))))
        return
    results = []
    for way in arguments.ways or (*WAYS, _SAVED_MODEL):
        case = {
            "way": way,
            "pairs": arguments.pairs,
            "steps": arguments.steps,
            "layers": arguments.layers,
            "hidden_dim": arguments.hidden_dim,
            "tokens_per_batch": arguments.tokens_per_batch,
        }
        results.append({**case, **in_new_process(case)})
        print_row(results)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1))


def in_new_process(case: dict[str, Any]) -> dict[str, Any]:
    """Measure a case and count the programs that XLA has written down."""
    with tempfile.TemporaryDirectory() as folder:
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={folder}"
        done = subprocess.run(
            [sys.executable, __file__, "--case", json.dumps(case)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            env={**os.environ, "XLA_FLAGS": flags.strip()},
        )
        programs = {
            path.name.split(".")[0]
            for path in Path(folder).glob("module_*")
            if any(name in path.name for name in _NAMES)
        }
    result = json.loads(done.stdout.splitlines()[-1])
    return {**result, "compiled": len(programs)}


def measure(
    way: str,
    pairs: int,
    steps: int,
    layers: int,
    hidden_dim: int,
    tokens_per_batch: int,
) -> dict[str, Any]:
    """Train or serve in one way; return programs, seconds and warnings."""
    sizes = {
        "num_layers": layers,
        "hidden_dim": hidden_dim,
        "intermediate_dim": 4 * hidden_dim,
        "num_heads": 4,
    }
    if way == _SAVED_MODEL:
        return serve(sizes)
    import keras
    import numpy as np

    from keras_tfm.models.transformer.transformer import Transformer
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.training_run import run_training

    random = np.random.default_rng(0)
    lengths = random.poisson(12, (2, pairs)).clip(1, 40)
    rows = [[random.integers(4, 1000, n) for n in side] for side in lengths]
    batches = make_batches(way, rows, tokens_per_batch)
    clock = StepClock(keras)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_training(
            Transformer(1000, **sizes),
            batches,
            TrainingSettings(),
            steps=steps,
            callbacks=[clock.callback],
        )
    usual = statistics.median(clock.seconds)
    return {
        "expected": len(batches.shapes),
        "warnings": sum("new shape" in str(w.message) for w in caught),
        "seconds": sum(clock.seconds),
        # What all steps took beyond the usual one.
        "compiling": sum(max(s - usual, 0) for s in clock.seconds),
        "padding": batches.padding_share,
    }


class StepClock:
    """Time each step of `fit`."""

    def __init__(self, keras: Any) -> None:
        self.seconds: list[float] = []
        self._began = 0.0
        self.callback = keras.callbacks.LambdaCallback(
            on_train_batch_begin=self._begin, on_train_batch_end=self._end
        )

    def _begin(self, batch: int, logs: Any = None) -> None:
        self._began = time.perf_counter()

    def _end(self, batch: int, logs: Any = None) -> None:
        self.seconds.append(time.perf_counter() - self._began)


def make_batches(way: str, rows: list[list[Any]], tokens: int) -> Any:
    """Put rows of ids into batches."""
    import tensorflow as tf

    from keras_tfm.data.batching import BucketedBatches
    from keras_tfm.data.packed_batches import PackedBatches

    if way == "packed":
        return PackedBatches(*rows, tokens)
    if way == "buckets":
        return BucketedBatches(*rows, tokens)

    class EveryLength(BucketedBatches):
        """Cut each batch to its own longest rows."""

        def dataset(self, *arguments: Any, **keywords: Any) -> tf.data.Dataset:
            def cut(inputs: dict[str, Any], labels: Any) -> Any:
                source, target = inputs["source_ids"], inputs["target_ids"]
                source = source[:, : longest(source)]
                kept = longest(target)
                target = target[:, :kept]
                inputs = {"source_ids": source, "target_ids": target}
                return inputs, labels[:, :kept]

            return super().dataset(*arguments, **keywords).map(cut)

    def longest(ids: Any) -> Any:
        lengths = tf.math.count_nonzero(ids, axis=1, dtype=tf.int32)
        return tf.reduce_max(lengths)

    return EveryLength(*rows, tokens, max_shapes=1)


def serve(sizes: dict[str, int]) -> dict[str, Any]:
    """Export a translator, load it, and send texts of many sizes."""
    import tensorflow as tf

    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.translation import Translator

    words = ["dog", "a dog", "red fox", "the quick fox"]
    translator = Translator.from_pairs(
        SentencePairs(words, words),
        tokenizer="characters",
        max_target_length=16,
        source_lengths=(8, 16),
        **sizes,
    )
    translator.batch_sizes = (1, 8)
    with tempfile.TemporaryDirectory() as folder:
        translator.export(folder)
        call = tf.saved_model.load(folder).signatures
        began = time.perf_counter()
        expected = int(call["warmup"]()["programs"])
        compiling = time.perf_counter() - began
        began = time.perf_counter()
        for number in (1, 2, 3, 8, 20):
            for letters in (1, 5, 9, 15):
                call["translate"](text=tf.constant(["a" * letters] * number))
        seconds = time.perf_counter() - began
    return {
        "expected": expected,
        "warnings": 0,
        "seconds": seconds + compiling,
        "compiling": compiling,
    }


def print_row(results: list[dict[str, Any]]) -> None:
    """Print the latest result."""
    if len(results) == 1:
        print(
            f"{'batches':<14}{'expected':>9}{'compiled':>9}{'warnings':>9}"
            f"{'compiling s':>13}{'in all s':>10}{'padding':>9}"
        )
    result = results[-1]
    padding = f"{result['padding']:.0%}" if "padding" in result else ""
    print(
        f"{result['way']:<14}{result['expected']:>9}{result['compiled']:>9}"
        f"{result['warnings']:>9}{result['compiling']:>13.1f}"
        f"{result['seconds']:>10.1f}{padding:>9}",
        flush=True,
    )


if __name__ == "__main__":
    main()

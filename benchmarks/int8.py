"""Int8 weights beside float32: size, time and BLEU of two SavedModels.

    python benchmarks/int8.py --translator runs/en-de --tokenize none \\
        --source ../shared/data/multi30k/tok/test2016.en \\
        --target ../shared/data/multi30k/tok/test2016.de

Both are exported from one translator and take turns on the same texts, in
batches of 64, greedily and with four beams.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    """Export, measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--translator", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--tokenize", help="sacrebleu's tokenizer")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    from keras_tfm.generation import BeamSearchGenerator
    from keras_tfm.generation import GreedyGenerator
    from keras_tfm.tasks.scores import bleu
    from keras_tfm.tasks.translation import Translator

    translator = Translator.load(arguments.translator)
    sources = Path(arguments.source).read_text("utf-8").splitlines()
    targets = Path(arguments.target).read_text("utf-8").splitlines()
    longest = translator.max_target_length
    print(
        f"{'search':<7} {'weights':<8} {'MB':>6} {'seconds':>8} "
        f"{'quartiles':>13} {'times':>6} {'BLEU':>6} {'same texts':>11}"
    )
    for name, generator in (
        ("greedy", GreedyGenerator(longest)),
        ("beam 4", BeamSearchGenerator(longest, 4, 1)),
    ):
        found = measure(translator, generator, sources, arguments.rounds)
        whole = found["float32"]
        for kind, result in found.items():
            low, middle, high = statistics.quantiles(result["seconds"], n=4)
            times = middle / statistics.median(whole["seconds"])
            score = bleu(result["texts"], targets, arguments.tokenize)
            same = sum(
                a == b
                for a, b in zip(result["texts"], whole["texts"], strict=True)
            )
            print(
                f"{name:<7} {kind:<8} {result['bytes'] / 1e6:>6.1f} "
                f"{middle:>8.2f} {low:>6.2f} {high:>6.2f} {times:>6.2f} "
                f"{score.value:>6.2f} {same:>6} / {len(sources)}"
            )


def measure(
    translator: Any, generator: Any, sources: list[str], rounds: int
) -> dict[str, dict[str, Any]]:
    """Return what each kind of weights takes and answers."""
    import tensorflow as tf

    results: dict[str, dict[str, Any]] = {}
    calls = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, quantization in (("float32", None), ("int8", "int8")):
            path = Path(folder) / kind
            translator.export(
                path, generator=generator, quantization=quantization
            )
            files = [file for file in path.rglob("*") if file.is_file()]
            size = sum(file.stat().st_size for file in files)
            results[kind] = {"bytes": size, "seconds": []}
            calls[kind] = tf.saved_model.load(str(path))
        # The first round compiles and does not count.
        for counts in [False] + [True] * rounds:
            for kind, loaded in calls.items():
                start = time.perf_counter()
                texts: list[str] = []
                for place in range(0, len(sources), 64):
                    batch = tf.constant(sources[place : place + 64])
                    answer = loaded.signatures["translate"](text=batch)
                    texts += [t.decode() for t in answer["text"].numpy()]
                if counts:
                    seconds = time.perf_counter() - start
                    results[kind]["seconds"].append(seconds)
                results[kind]["texts"] = texts
    return results


if __name__ == "__main__":
    main()

"""Real tokens a second of a training: packed, bucketed and padded batches.

    python benchmarks/batching.py \\
        --source ../shared/data/multi30k/tok/train.en.gz \\
        --target ../shared/data/multi30k/tok/train.de.gz

One model, one set of pairs and one number of positions a batch; what differs is
how the pairs are put into batches:

- packed: several pairs share a row; one shape;
- buckets: a pair a row, padded to one of a few lengths;
- padded: a pair a row, in random order, padded to the longest of all pairs;
- padded, each batch: the same, padded to the longest of the batch. Its shapes
  are too many to compile, so that it runs without XLA.

Each calls the function that `model.fit` calls. They take turns: each trains for
`--steps` steps in each of `--rounds` rounds. Compiling is timed by itself. The
last column is how many times the real target tokens of the padded batches are
trained in a second.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_LONGEST = 64


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--vocabulary-size", type=int, default=9712)
    parser.add_argument("--preset", default="transformer_tiny_multi30k")
    parser.add_argument("--tokens-per-batch", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", help="JSON file to write")
    arguments = parser.parse_args()
    contenders = prepare(arguments)
    for _ in range(arguments.rounds):
        for contender in contenders:
            contender.train(arguments.steps)
    results = [contender.result() for contender in contenders]
    print_table(results)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1))


def prepare(arguments: argparse.Namespace) -> list[Contender]:
    """Read the pairs, train the tokenizer, and compile each contender."""
    import tensorflow as tf

    from keras_tfm.data.sentence_pairs import read_parallel
    from keras_tfm.models.loss_model import LossModel
    from keras_tfm.models.loss_model import with_labels
    from keras_tfm.models.transformer.transformer import Transformer
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.tokenizing import token_rows
    from keras_tfm.tasks.tokenizing import train_tokenizers
    from keras_tfm.tasks.training_batches import make_batches
    from keras_tfm.tasks.training_run import compile_network
    from keras_tfm.tasks.training_run import network_for

    pairs = read_parallel(arguments.source, arguments.target)
    tokenizer, _ = train_tokenizers(
        pairs, "bpe", arguments.vocabulary_size, True
    )
    rows = [
        [np.append(row, tokenizer.end_id) for row in token_rows(tokenizer, t)]
        for t in (pairs.sources, pairs.targets)
    ]
    rows = list(
        zip(
            *[
                pair
                for pair in zip(*rows, strict=True)
                if max(map(len, pair)) <= _LONGEST
            ],
            strict=True,
        )
    )
    longest = max(max(map(len, side)) for side in rows)
    contenders = []
    kinds = ("packed", "buckets", "padded", "padded, each batch")
    for kind in kinds:
        model = Transformer.from_preset(
            arguments.preset, tokenizer.vocabulary_size
        )
        if kind in ("packed", "buckets"):
            settings = TrainingSettings(
                batching=kind,
                tokens_per_batch=arguments.tokens_per_batch,
                max_sequence_length=_LONGEST,
            )
            batches = make_batches(tokenizer, tokenizer, pairs, settings)
            network = network_for(model, batches, settings)
            dataset = batches.dataset()
            shapes = len(batches.shapes)
            padding = batches.padding_share
        else:
            settings = TrainingSettings(batching="buckets")
            network = LossModel(model, label_smoothing=0.1)
            length = longest if kind == "padded" else None
            plain = list(
                padded_batches(*rows, arguments.tokens_per_batch, length)
            )
            shapes = len({(x["source_ids"].shape, y.shape) for x, y in plain})
            real = sum((y != 0).sum() + (x["source_ids"] != 0).sum()
                       for x, y in plain)  # fmt: skip
            positions = sum(y.size + x["source_ids"].size for x, y in plain)
            padding = 1 - real / positions
            spec = tf.TensorSpec((None, None), tf.int32)
            dataset = tf.data.Dataset.from_generator(
                lambda plain=plain: iter(plain),
                output_signature=(
                    {"source_ids": spec, "target_ids": spec},
                    spec,
                ),
            ).repeat()
        dataset = dataset.map(with_labels)
        compile_network(network, settings)
        if kind == "padded, each batch":
            network.jit_compile = False
        contenders.append(Contender(kind, network, dataset, shapes, padding))
    return contenders


def padded_batches(
    sources: list[np.ndarray],
    targets: list[np.ndarray],
    tokens_per_batch: int,
    length: int | None,
) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """Yield batches in random order, padded to a length or to their longest."""
    order = np.random.default_rng(0).permutation(len(sources))
    while len(order):
        size = tokens_per_batch // (length or _LONGEST)
        if length is None:
            # As many rows as the longest of them leaves room for.
            longest = np.maximum.accumulate(
                [max(len(sources[i]), len(targets[i])) for i in order[:4096]]
            )
            fits = longest * np.arange(1, len(longest) + 1) <= tokens_per_batch
            size = int(fits.sum())
        chosen, order = order[:size], order[size:]
        source = _padded([sources[i] for i in chosen], length, size)
        labels = _padded([targets[i] for i in chosen], length, size)
        inputs = np.zeros_like(labels)
        inputs[:, 1:] = np.where(labels[:, 1:] != 0, labels[:, :-1], 0)
        inputs[: len(chosen), 0] = 1
        yield {"source_ids": source, "target_ids": inputs}, labels


def _padded(
    rows: list[np.ndarray], length: int | None, size: int
) -> np.ndarray:
    padded = np.zeros((size, length or max(map(len, rows))), "int32")
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded


class Contender:
    """A network and its batches, and how fast they were."""

    def __init__(
        self,
        name: str,
        network: Any,
        dataset: Any,
        shapes: int,
        padding: float,
    ) -> None:
        self.name = name
        self.network = network
        self.shapes = shapes
        self.padding = padding
        self.speeds: list[float] = []
        self._iterator = iter(dataset)
        network.make_train_function()
        began = time.perf_counter()
        seen: set[Any] = set()
        # Each shape once, as far as that is feasible.
        while len(seen) < min(shapes, 8):
            seen.add(self._step()[1])
        self.compile_seconds = time.perf_counter() - began

    def _step(self) -> tuple[int, Any]:
        inputs, labels = batch = next(self._iterator)
        logs = self.network.train_function(iter([batch]))
        float(logs["loss"])
        real = int(np.count_nonzero(labels))
        return real, (inputs["source_ids"].shape, labels.shape)

    def train(self, steps: int) -> None:
        """Train for some steps and note the real target tokens a second."""
        began = time.perf_counter()
        tokens = sum(self._step()[0] for _ in range(steps))
        self.speeds.append(tokens / (time.perf_counter() - began))

    def result(self) -> dict[str, Any]:
        """Return what was measured."""
        low, middle, high = statistics.quantiles(self.speeds, n=4)
        return {
            "batches": self.name,
            "shapes": self.shapes,
            "padding": self.padding,
            "first_steps_seconds": self.compile_seconds,
            "target_tokens_per_second": middle,
            "quartiles": (low, high),
        }


def print_table(results: list[dict[str, Any]]) -> None:
    """Print what was measured, and the ratios to the padded batches."""
    padded = next(r for r in results if r["batches"] == "padded")
    print(
        f"{'batches':<20}{'shapes':>7}{'padding':>9}{'first steps':>13}"
        f"{'tokens/s':>10}{'quartiles':>16}{'times padded':>14}"
    )
    for result in results:
        speed = result["target_tokens_per_second"]
        low, high = result["quartiles"]
        ratio = speed / padded["target_tokens_per_second"]
        print(
            f"{result['batches']:<20}{result['shapes']:>7}"
            f"{result['padding']:>9.1%}"
            f"{result['first_steps_seconds']:>11.0f} s{speed:>10,.0f}"
            f"{low:>8,.0f}{high:>8,.0f}{ratio:>14.2f}"
        )


if __name__ == "__main__":
    main()

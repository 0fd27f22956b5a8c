"""Time and peak memory of attention: dense, in tiles, local, compressed.

    python benchmarks/attention_memory.py --output attention.json \\
        --picture attention.png

For each length and kind a new process runs attention and its gradient by
queries, keys and values, compiled with XLA, and reports the median time of some
runs and by how much its peak memory grew. Before that it has compiled and run
the same at a length of 64, so that libraries and compiler do not count. What
dense attention would not find room for is left out.

- dense: all weights in memory;
- blockwise: the same result in tiles;
- local: each query sees its own block of 256 positions and the one before;
- compressed: three positions are one key and one value, made by a convolution,
  and attention to these goes in tiles.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KINDS = ("dense", "blockwise", "local", "compressed")
_BLOCK_LENGTH = 256
_COMPRESSION = 3
_WARM_UP_LENGTH = 64
# Arrays of all scores that dense attention holds at once, at its peak.
_DENSE_ARRAYS = 4
_MIB = 2**20


def main() -> None:
    """Measure every case in a process of its own and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[1024, 4096, 16384, 65536]
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--head-size", type=int, default=64)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--picture", help="PNG file to draw")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        case = json.loads(arguments.case)
        print(json.dumps(measure(**case)))
        return
    results = []
    for length in arguments.lengths:
        for kind in arguments.kinds:
            case = {
                "kind": kind,
                "length": length,
                "heads": arguments.heads,
                "head_size": arguments.head_size,
                "causal": arguments.causal,
                "rounds": arguments.rounds,
            }
            results.append({**case, **in_new_process(case)})
            print_row(results)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1))
    if arguments.picture:
        draw(results, arguments.picture)


def in_new_process(case: dict[str, Any]) -> dict[str, Any]:
    """Measure one case; an empty result where it has no room."""
    needed = _DENSE_ARRAYS * 4 * case["heads"] * case["length"] ** 2
    if case["kind"] == "dense" and needed > available_memory():
        return {}
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def available_memory() -> int:
    """Return the bytes that a new process could take."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":") for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024


def measure(
    kind: str,
    length: int,
    heads: int,
    head_size: int,
    causal: bool,
    rounds: int,
) -> dict[str, Any]:
    """Run attention and its gradient, and return seconds and MiB."""
    import numpy as np
    import tensorflow as tf
    from keras import ops

    attend = attention_of(kind, causal)

    @tf.function(jit_compile=True, autograph=False)
    def gradients(*tensors: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            output = attend(*tensors)
            total = ops.sum(output * output)
        return tape.gradient(total, tensors)

    def run(length: int) -> float:
        shape = (1, heads, length, head_size)
        numbers = np.random.default_rng(0).normal(size=(3, *shape))
        tensors = [tf.constant(x, tf.float32) for x in numbers]
        seconds = []
        # The first run compiles.
        for _ in range(rounds + 1):
            began = time.perf_counter()
            found = gradients(*tensors)
            float(found[0][0, 0, 0, 0])
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds[1:])

    run(_WARM_UP_LENGTH)
    before = peak_memory()
    seconds = run(length)
    return {"seconds": seconds, "mib": (peak_memory() - before) / _MIB}


def attention_of(kind: str, causal: bool) -> Callable[[Any, Any, Any], Any]:
    """Return a function of queries, keys and values."""
    from keras import ops

    from keras_tfm.ops.attention import dot_product_attention
    from keras_tfm.ops.attention import join_heads
    from keras_tfm.ops.attention import split_heads
    from keras_tfm.ops.blockwise_attention import blockwise_attention
    from keras_tfm.ops.local_attention import local_attention
    from keras_tfm.ops.masks import causal_mask
    from keras_tfm.ops.memory_compression import slot_inputs
    from keras_tfm.ops.memory_compression import visible_slots
    from keras_tfm.ops.windows import OwnAndPreviousBlock

    def dense(query: Any, key: Any, value: Any) -> Any:
        mask = causal_mask(query.shape[2]) if causal else None
        return dot_product_attention(query, key, value, mask)[0]

    def blockwise(query: Any, key: Any, value: Any) -> Any:
        return blockwise_attention(query, key, value, use_causal_mask=causal)

    def local(query: Any, key: Any, value: Any) -> Any:
        window = OwnAndPreviousBlock(_BLOCK_LENGTH)
        return local_attention(
            query, key, value, window, use_causal_mask=causal
        )[0]

    def compressed(query: Any, key: Any, value: Any) -> Any:
        heads, length, size = query.shape[1:]
        width = _COMPRESSION * heads * size
        kernel = ops.ones((width, heads * size)) / width

        def convolve(tensor: Any) -> Any:
            slots = slot_inputs(join_heads(tensor), _COMPRESSION, causal)
            return split_heads(ops.matmul(slots, kernel), heads)

        key, value = convolve(key), convolve(value)
        masks = ()
        if causal:
            queries = ops.arange(length, dtype="int32")
            mask = visible_slots(queries, key.shape[2], _COMPRESSION)
            masks = (mask[None, None],)
        return blockwise_attention(query, key, value, masks)

    functions = (dense, blockwise, local, compressed)
    return {function.__name__: function for function in functions}[kind]


def peak_memory() -> int:
    """Return the most bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def print_row(results: list[dict[str, Any]]) -> None:
    """Print the latest result, and its ratios to the dense one."""
    result = results[-1]
    if len(results) == 1:
        print(
            f"{'length':>7} {'kind':<11}{'seconds':>9}{'MiB':>9}"
            f"{'time/dense':>12}{'memory/dense':>14}"
        )
    start = f"{result['length']:>7} {result['kind']:<11}"
    if "seconds" not in result:
        print(f"{start}  does not fit", flush=True)
        return
    line = f"{start}{result['seconds']:>9.3f}{result['mib']:>9.0f}"
    dense = [
        r
        for r in results
        if r["kind"] == "dense"
        and r["length"] == result["length"]
        and "seconds" in r
    ]
    if dense and result["kind"] != "dense":
        line += f"{result['seconds'] / dense[0]['seconds']:>12.2f}"
        line += f"{result['mib'] / dense[0]['mib']:>14.3f}"
    print(line, flush=True)


def draw(results: list[dict[str, Any]], path: str) -> None:
    """Draw seconds and memory by the length, a line for each kind."""
    from matplotlib.figure import Figure

    figure = Figure((9.0, 3.6), layout="constrained")
    for place, (name, title) in enumerate(
        {"seconds": "Seconds", "mib": "MiB"}.items(), start=1
    ):
        axes = figure.add_subplot(1, 2, place)
        for kind in dict.fromkeys(result["kind"] for result in results):
            points = [
                (result["length"], result[name])
                for result in results
                if result["kind"] == kind and name in result
            ]
            if points:
                axes.loglog(*zip(*points, strict=True), "o-", label=kind)
        axes.set_title(title)
        axes.set_xlabel("positions")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False)
    figure.savefig(path, dpi=90, facecolor="white")


if __name__ == "__main__":
    main()

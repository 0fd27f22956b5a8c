"""Time of a training step beside KerasHub, Keras, torch and Marian.

    python benchmarks/training_step.py --output training_step.json

Every contender trains the same encoder-decoder: pre-norm with a norm at the end
of each stack, biases, one embedding table for source, target and softmax,
sinusoidal positions, dropout 0.1 of the embeddings, of the attention weights
and of each part's output, cross-entropy over the real targets, Adam. (Marian is
post-norm and has no norms at the end.) Each uses what its own library offers
for that. The batch is the same random ids, without padding. Parameters are
counted and printed.

Each contender has a process of its own. They take turns, so that a busy moment
of the machine meets all of them, and each turn is the mean of `--steps` steps.
The table gives the median and the quartiles over the turns, how many times as
long as ours it took, and the share of the machine's peak: the operations of the
matrix products of a step in relation to those of a product of two matrices of
2048 x 2048, measured by ours in the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from workers import Worker
from workers import answer

CONFIGURATIONS: dict[str, dict[str, int]] = {
    "tiny": {
        "hidden_dim": 128,
        "intermediate_dim": 256,
        "num_heads": 4,
        "num_layers": 4,
        "vocabulary_size": 9712,
        "tokens": 2048,
    },
    "small": {
        "hidden_dim": 256,
        "intermediate_dim": 1024,
        "num_heads": 4,
        "num_layers": 4,
        "vocabulary_size": 10_000,
        "tokens": 2048,
    },
    "base": {
        "hidden_dim": 512,
        "intermediate_dim": 2048,
        "num_heads": 8,
        "num_layers": 6,
        "vocabulary_size": 32_000,
        "tokens": 512,
    },
}
CONTENDERS = (
    "ours",
    "keras_hub",
    "keras_hub_xla",
    "keras_xla",
    "torch",
    "torch_compiled",
    "marian",
)
DROPOUT = 0.1
RATE = 1e-4
BETA_2 = 0.98
_PEAK_SIZE = 2048

# Runs some steps and returns the loss of the last one.
Steps = Callable[[int], float]


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--configurations",
        nargs="+",
        choices=CONFIGURATIONS,
        default=["small"],
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[32])
    parser.add_argument(
        "--contenders", nargs="+", choices=CONTENDERS, default=CONTENDERS
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        train(arguments.worker, json.loads(arguments.case))
        return
    results = []
    for name in arguments.configurations:
        for length in arguments.lengths:
            results.append(measure(arguments, name, length))
            print_table(results[-1])
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1))


def measure(
    arguments: argparse.Namespace, name: str, length: int
) -> dict[str, Any]:
    """Let the contenders take turns at one configuration."""
    case = {
        **CONFIGURATIONS[name],
        "length": length,
        "threads": arguments.threads,
    }
    workers = {
        contender: Worker(
            [__file__, "--worker", contender, "--case", json.dumps(case)]
        )
        for contender in arguments.contenders
    }
    found = {}
    for contender, worker in workers.items():
        # The first steps compile.
        found[contender] = {
            **worker.ask({"steps": 2}),
            "seconds": [],
        }
    peaks = []
    for _ in range(arguments.rounds):
        for contender, worker in workers.items():
            reply = worker.ask({"steps": arguments.steps})
            found[contender]["seconds"].append(reply["seconds"])
        peaks.append(workers[arguments.contenders[0]].ask({"peak": True}))
    for worker in workers.values():
        worker.close()
    return {
        "configuration": name,
        **case,
        "operations": operations(case),
        "peak": max(peaks),
        "contenders": found,
    }


def operations(case: dict[str, int]) -> float:
    """Count the additions and multiplications of a step's matrix products.

    Two a weight and token forward, and four backward; attention is twice two
    products of its length and width, and the context's is another one.
    """
    width, inner = case["hidden_dim"], case["intermediate_dim"]
    tokens, layers = case["tokens"], case["num_layers"]
    attention = 4 * width**2 + 2 * case["length"] * width
    feed_forward = 2 * width * inner
    encoder = layers * (attention + feed_forward)
    decoder = layers * (2 * attention + feed_forward)
    softmax = width * case["vocabulary_size"]
    return 6.0 * tokens * (encoder + decoder + softmax)


def print_table(result: dict[str, Any]) -> None:
    """Print one configuration's times."""
    rows = result["tokens"] // result["length"]
    print(
        f"\n{result['configuration']}: {result['hidden_dim']}/"
        f"{result['intermediate_dim']}/{result['num_heads']}, "
        f"{result['num_layers']}+{result['num_layers']} layers, vocabulary "
        f"{result['vocabulary_size']:,}, {rows} rows of {result['length']}+"
        f"{result['length']}, {result['threads']} threads, peak "
        f"{result['peak'] / 1e9:.0f} GFLOP/s\n"
        f"{'contender':<16}{'parameters':>12}{'compiling s':>13}"
        f"{'median ms':>11}{'quartiles':>16}{'times ours':>12}{'of peak':>9}"
    )
    first = next(iter(result["contenders"].values()))
    ours = statistics.median(first["seconds"])
    for name, found in result["contenders"].items():
        low, middle, high = statistics.quantiles(found["seconds"], n=4)
        share = result["operations"] / middle / result["peak"]
        print(
            f"{name:<16}{found['parameters']:>12,}{found['first']:>13.1f}"
            f"{1e3 * middle:>11.0f}{1e3 * low:>8.0f}{1e3 * high:>8.0f}"
            f"{middle / ours:>12.2f}{share:>9.1%}",
            flush=True,
        )


def train(name: str, case: dict[str, int]) -> None:
    """Be a contender: answer each request with a time."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    ids = random_ids(case)
    began = time.perf_counter()
    parameters, steps = globals()[f"make_{name}"](case, *ids)
    losses = []

    def reply(request: dict[str, Any]) -> Any:
        if "peak" in request:
            return peak()
        start = time.perf_counter()
        losses.append(steps(request["steps"]))
        seconds = (time.perf_counter() - start) / request["steps"]
        if len(losses) == 1:
            # One that does not learn is not a contender.
            expected = math.log(case["vocabulary_size"])
            if not 0.5 * expected < losses[0] < 2.0 * expected:
                raise RuntimeError(f"The first loss is {losses[0]}.")
        return {
            "seconds": seconds,
            "parameters": parameters,
            "first": time.perf_counter() - began,
            "loss": losses[-1],
        }

    answer(reply)


def random_ids(case: dict[str, int]) -> tuple[np.ndarray, ...]:
    """Draw sources, targets as read, and targets as predicted."""
    rows = case["tokens"] // case["length"]
    shape = (2, rows, case["length"])
    rng = np.random.default_rng(0)
    source, labels = rng.integers(4, case["vocabulary_size"], shape, "int32")
    target = np.concatenate(
        [np.ones((rows, 1), "int32"), labels[:, :-1]], axis=1
    )
    return source, target, labels


def peak() -> float:
    """Return the operations a second of a large matrix product, by oneDNN."""
    import tensorflow as tf

    size = _PEAK_SIZE
    matrix = tf.random.normal((size, size))
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        float(tf.matmul(matrix, matrix)[0, 0])
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds)


def make_ours(case: dict[str, int], *ids: np.ndarray) -> tuple[int, Steps]:
    """Make our model, as `Translator.fit` trains it."""
    from keras_tfm.models.loss_model import LossModel
    from keras_tfm.models.transformer.transformer import Transformer

    set_tensorflow_threads(case)
    model = Transformer(
        case["vocabulary_size"],
        num_layers=case["num_layers"],
        hidden_dim=case["hidden_dim"],
        intermediate_dim=case["intermediate_dim"],
        num_heads=case["num_heads"],
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        use_bias=True,
        tie_embeddings="all",
    )
    network = LossModel(model)
    source, target, labels = ids
    inputs = {"source_ids": source, "target_ids": target, "labels": labels}
    return keras_steps(network, None, True, inputs, labels)


def make_keras_hub(
    case: dict[str, int], *ids: np.ndarray, xla: bool = False
) -> tuple[int, Steps]:
    """Make the model of KerasHub's encoder and decoder layers."""
    import keras
    from keras_hub.layers import TransformerDecoder
    from keras_hub.layers import TransformerEncoder

    sizes = {
        "intermediate_dim": case["intermediate_dim"],
        "num_heads": case["num_heads"],
        "dropout": DROPOUT,
        "layer_norm_epsilon": 1e-6,
        "normalize_first": True,
    }

    def encode(inputs: Any) -> Any:
        return TransformerEncoder(**sizes)(inputs)

    def decode(inputs: Any, context: Any) -> Any:
        return TransformerDecoder(**sizes)(inputs, context)

    set_tensorflow_threads(case)
    model = keras_model(case, encode, decode)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return keras_steps(model, loss, xla, *named(*ids))


def make_keras_hub_xla(
    case: dict[str, int], *ids: np.ndarray
) -> tuple[int, Steps]:
    """Make the same, compiled with XLA."""
    return make_keras_hub(case, *ids, xla=True)


def make_keras_xla(case: dict[str, int], *ids: np.ndarray) -> tuple[int, Steps]:
    """Make the model of Keras's own layers."""
    import keras
    from keras import layers

    width = case["hidden_dim"]

    def part(inputs: Any, function: Callable[[Any], Any]) -> Any:
        normed = layers.LayerNormalization(epsilon=1e-6)(inputs)
        return inputs + layers.Dropout(DROPOUT)(function(normed))

    def attend(
        inputs: Any, context: Any = None, use_causal_mask: bool = False
    ) -> Any:
        attention = layers.MultiHeadAttention(
            case["num_heads"], width // case["num_heads"], dropout=DROPOUT
        )
        context = inputs if context is None else context
        return attention(inputs, context, use_causal_mask=use_causal_mask)

    def feed_forward(inputs: Any) -> Any:
        inner = layers.Dense(case["intermediate_dim"], activation="relu")
        return layers.Dense(width)(inner(inputs))

    def encode(inputs: Any) -> Any:
        return part(part(inputs, attend), feed_forward)

    def decode(inputs: Any, context: Any) -> Any:
        inputs = part(inputs, lambda x: attend(x, use_causal_mask=True))
        inputs = part(inputs, lambda x: attend(x, context))
        return part(inputs, feed_forward)

    set_tensorflow_threads(case)
    model = keras_model(case, encode, decode)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return keras_steps(model, loss, True, *named(*ids))


def set_tensorflow_threads(case: dict[str, int]) -> None:
    """Let TensorFlow use so many threads."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(case["threads"])


def keras_model(
    case: dict[str, int],
    encode: Callable[[Any], Any],
    decode: Callable[[Any, Any], Any],
) -> Any:
    """Assemble an encoder-decoder of blocks of any kind."""
    import keras
    from keras_hub.layers import ReversibleEmbedding
    from keras_hub.layers import SinePositionEncoding

    width = case["hidden_dim"]
    table = ReversibleEmbedding(case["vocabulary_size"], width)

    def embed(ids: Any) -> Any:
        vectors = table(ids) * width**0.5
        vectors = vectors + SinePositionEncoding()(vectors)
        return keras.layers.Dropout(DROPOUT)(vectors)

    def norm(inputs: Any) -> Any:
        return keras.layers.LayerNormalization(epsilon=1e-6)(inputs)

    source = keras.Input((case["length"],), dtype="int32", name="source_ids")
    target = keras.Input((case["length"],), dtype="int32", name="target_ids")
    context, output = embed(source), embed(target)
    for _ in range(case["num_layers"]):
        context = encode(context)
    context = norm(context)
    for _ in range(case["num_layers"]):
        output = decode(output, context)
    # Small enough at the start, as ours are.
    output = norm(output) * width**-0.5
    logits = table(output, reverse=True)
    return keras.Model({"source_ids": source, "target_ids": target}, logits)


def named(
    source: np.ndarray, target: np.ndarray, labels: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the inputs of a Keras model by name, and the labels."""
    return {"source_ids": source, "target_ids": target}, labels


def keras_steps(
    model: Any,
    loss: Any,
    xla: bool,
    inputs: dict[str, np.ndarray],
    labels: np.ndarray,
) -> tuple[int, Steps]:
    """Return the parameters and the steps of a Keras model."""
    import keras
    import tensorflow as tf

    optimizer = keras.optimizers.Adam(RATE, beta_2=BETA_2)
    model.compile(optimizer, loss=loss, jit_compile=xla)
    batch = (
        {name: tf.constant(ids) for name, ids in inputs.items()},
        tf.constant(labels),
    )
    model.make_train_function()
    step = model.train_function

    def steps(number: int) -> float:
        for _ in range(number):
            logs = step(iter([batch]))
        return float(logs["loss"])

    return model.count_params(), steps


def make_torch(
    case: dict[str, int], *ids: np.ndarray, compiled: bool = False
) -> tuple[int, Steps]:
    """Make the model of `torch.nn.Transformer`."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(case["threads"])
    width, length = case["hidden_dim"], case["length"]
    # Scaled in the model; a softmax of its rows begins near the uniform one.
    table = nn.Embedding(case["vocabulary_size"], width)
    nn.init.normal_(table.weight, std=width**-0.5)
    body = nn.Transformer(
        width,
        case["num_heads"],
        case["num_layers"],
        case["num_layers"],
        case["intermediate_dim"],
        DROPOUT,
        norm_first=True,
        batch_first=True,
    )
    for layer in (*body.encoder.layers, *body.decoder.layers):
        layer.dropout = nn.Identity()  # The others do not drop there.
    model = nn.ModuleList([table, body])
    positions = torch_positions(length, width)
    drop = nn.Dropout(DROPOUT)
    causal = nn.Transformer.generate_square_subsequent_mask(length)
    cross_entropy = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(
        model.parameters(), RATE, betas=(0.9, BETA_2), eps=1e-7
    )
    source, target, labels = (torch.from_numpy(x).long() for x in ids)

    def embed(ids: Any) -> Any:
        return drop(table(ids) * width**0.5 + positions)

    def forward(source: Any, target: Any, labels: Any) -> Any:
        output = body(
            embed(source), embed(target), tgt_mask=causal, tgt_is_causal=True
        )
        logits = nn.functional.linear(output, table.weight)
        return cross_entropy(logits.flatten(0, 1), labels.flatten())

    if compiled:
        forward = torch.compile(forward)

    def steps(number: int) -> float:
        for _ in range(number):
            optimizer.zero_grad(set_to_none=True)
            loss = forward(source, target, labels)
            loss.backward()
            optimizer.step()
        return float(loss.detach())

    return sum(p.numel() for p in model.parameters()), steps


def make_torch_compiled(
    case: dict[str, int], *ids: np.ndarray
) -> tuple[int, Steps]:
    """Make the same, with the forward and backward pass compiled."""
    return make_torch(case, *ids, compiled=True)


def torch_positions(length: int, width: int) -> Any:
    """Return sinusoids `(length, width)`."""
    import torch

    places = torch.arange(length)[:, None]
    rates = torch.exp(-math.log(1e4) * torch.arange(0, width, 2) / width)
    waves = places * rates
    return torch.cat([waves.sin(), waves.cos()], dim=1)


def make_marian(case: dict[str, int], *ids: np.ndarray) -> tuple[int, Steps]:
    """Make the Marian of transformers."""
    import torch
    from transformers import MarianConfig
    from transformers import MarianMTModel

    torch.manual_seed(0)
    torch.set_num_threads(case["threads"])
    layers, heads = case["num_layers"], case["num_heads"]
    config = MarianConfig(
        vocab_size=case["vocabulary_size"],
        d_model=case["hidden_dim"],
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=case["intermediate_dim"],
        decoder_ffn_dim=case["intermediate_dim"],
        activation_function="relu",
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        activation_dropout=0.0,
        scale_embedding=True,
        pad_token_id=0,
        decoder_start_token_id=1,
        eos_token_id=2,
        forced_eos_token_id=2,
        max_position_embeddings=case["length"],
        init_std=case["hidden_dim"] ** -0.5,
    )
    model = MarianMTModel(config).train()
    optimizer = torch.optim.Adam(
        model.parameters(), RATE, betas=(0.9, BETA_2), eps=1e-7
    )
    source, target, labels = (torch.from_numpy(x).long() for x in ids)

    def steps(number: int) -> float:
        for _ in range(number):
            optimizer.zero_grad(set_to_none=True)
            loss = model(
                input_ids=source, decoder_input_ids=target, labels=labels
            ).loss
            loss.backward()
            optimizer.step()
        return float(loss.detach())

    learnt = [p for p in model.parameters() if p.requires_grad]
    return sum(p.numel() for p in learnt), steps


if __name__ == "__main__":
    sys.exit(main())

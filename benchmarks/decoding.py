"""Decoding speed of our SavedModel beside CTranslate2, Marian and KerasHub.

    python benchmarks/decoding.py                         # random weights
    python benchmarks/decoding.py --translator runs/en-de \\
        --source ../shared/data/multi30k/tok/test2016.en  # trained ones

Every contender is loaded in a process of its own, has the same sizes and
translates the same texts. With random weights a source has 32 tokens and a
translation is held at 32. The processes take turns, so that a busy moment of
the machine meets all of them; the table gives the median, the quartiles and, as
the last column, how many times as long as ours a contender took.
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
from pathlib import Path
from typing import Any

from workers import Worker
from workers import answer

LENGTH = 32
SIZES = {
    "num_layers": 4,
    "hidden_dim": 256,
    "intermediate_dim": 1024,
    "num_heads": 4,
}
VOCABULARY_SIZE = 10_000
CASES = ("1x1", "8x1", "64x1", "1x4", "64x4")
CONTENDERS = ("ours", "ctranslate2", "ctranslate2_int8", "marian", "keras_hub")


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS)
    parser.add_argument(
        "--cases", nargs="+", default=CASES, help="rows x beams, such as 64x4"
    )
    parser.add_argument("--translator", help="folder of a trained translator")
    parser.add_argument("--source", help="its texts, one a line")
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        serve(arguments.worker, Path(arguments.folder), arguments.threads)
        return
    with tempfile.TemporaryDirectory() as folder:
        results = measure(arguments, Path(folder))
    print_table(results)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1))


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Prepare the models, let the contenders take turns, return the times."""
    prepare = [sys.executable, __file__, "--worker", "prepare"]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    settings = {
        "translator": arguments.translator,
        "source": arguments.source,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    run = subprocess.run(
        [*prepare, "--folder", folder], env={**os.environ, **quiet}
    )
    run.check_returncode()
    names = [
        name
        for name in arguments.contenders
        if not arguments.translator or name not in ("marian", "keras_hub")
    ]
    options = ["--folder", str(folder), "--threads", str(arguments.threads)]
    workers = {
        name: Worker([__file__, "--worker", name, *options], quiet)
        for name in names
    }
    results: dict[str, Any] = {"threads": arguments.threads, "cases": []}
    for shape in arguments.cases:
        rows, beams = map(int, shape.split("x"))
        case = {"rows": rows, "beams": beams, "seconds": {}}
        for name, worker in workers.items():
            # The first call compiles; a contender may be unable to.
            if worker.ask([rows, beams]) is not None:
                case["seconds"][name] = []
        for _ in range(arguments.rounds):
            for name, times in case["seconds"].items():
                times.append(workers[name].ask([rows, beams]))
        results["cases"].append(case)
        print(f"batch {rows}, beams {beams}: done", file=sys.stderr)
    for worker in workers.values():
        worker.close()
    return results


def print_table(results: dict[str, Any]) -> None:
    """Print the medians, their spread and the ratios."""
    print(f"threads: {results['threads']}")
    print(
        f"{'batch':>5} {'beams':>5}  {'contender':<17} {'median ms':>10} "
        f"{'quartiles':>17} {'times ours':>11}"
    )
    for case in results["cases"]:
        ours = statistics.median(case["seconds"]["ours"])
        for name, times in case["seconds"].items():
            low, middle, high = statistics.quantiles(times, n=4)
            print(
                f"{case['rows']:>5} {case['beams']:>5}  {name:<17} "
                f"{1e3 * middle:>10.1f} {1e3 * low:>8.1f}{1e3 * high:>9.1f} "
                f"{middle / ours:>11.2f}"
            )


def serve(name: str, folder: Path, threads: int) -> None:
    """Be a contender: answer each line of standard input with a time."""
    if name == "prepare":
        write_models(folder)
        return
    contender = globals()[f"load_{name}"](folder, threads)
    texts = json.loads((folder / "texts.json").read_text())

    def reply(shape: list[int]) -> float | None:
        rows, beams = shape
        batch = texts[:rows] if len(texts) == 64 else texts
        start = time.perf_counter()
        done = contender(batch, rows, beams)
        seconds = time.perf_counter() - start
        return seconds if done else None

    answer(reply)


def write_models(folder: Path) -> None:
    """Write the SavedModels, the CTranslate2 models and the texts."""
    from keras_tfm.export.ctranslate2 import write_ctranslate2
    from keras_tfm.generation import BeamSearchGenerator
    from keras_tfm.generation import GreedyGenerator
    from keras_tfm.generation import MeanLengthPenalty

    settings = json.loads((folder / "settings.json").read_text())
    translator, texts, fewest = random_translator(), None, LENGTH
    if settings["translator"]:
        translator, texts, fewest = trained_translator(settings)
    longest = translator.max_target_length
    generators = {
        1: GreedyGenerator(longest, min_length=fewest),
        # The penalty that CTranslate2 uses unless told otherwise.
        4: BeamSearchGenerator(
            longest,
            4,
            1,
            length_penalty=MeanLengthPenalty(),
            min_length=fewest,
        ),
    }
    for beams, generator in generators.items():
        translator.generator = generator
        translator.export(folder / f"saved_model_{beams}")
    for quantization in (None, "int8"):
        write_ctranslate2(
            translator.model,
            translator.source_tokenizer,
            translator.target_tokenizer,
            folder / f"ctranslate2_{quantization}",
            max(translator.source_lengths),
            longest,
            quantization,
        )
    tokenizer = translator.source_tokenizer
    if texts is None:
        texts = random_texts(tokenizer, 64)
    (folder / "texts.json").write_text(json.dumps(texts))
    pieces = [
        tokenizer.pieces(row) for row in tokenizer.tokenize(texts).to_list()
    ]
    (folder / "pieces.json").write_text(json.dumps(pieces))
    limits = {"longest": longest, "fewest": fewest}
    (folder / "limits.json").write_text(json.dumps(limits))


def random_translator() -> Any:
    """Make a translator of the sizes above, with as many characters as ids."""
    import keras

    from keras_tfm.models import Transformer
    from keras_tfm.tasks.translation import Translator
    from keras_tfm.text import CharacterTokenizer

    keras.utils.set_random_seed(1)
    first = ord("一")
    characters = map(chr, range(first, first + VOCABULARY_SIZE - 4))
    tokenizer = CharacterTokenizer.train(["".join(characters)])
    model = Transformer(
        tokenizer.vocabulary_size, **SIZES, tie_embeddings="all", use_bias=True
    )
    return Translator(model, tokenizer, tokenizer, LENGTH, (LENGTH,))


def random_texts(tokenizer: Any, count: int) -> list[str]:
    """Draw texts of 31 tokens, so that they have 32 with their end."""
    import numpy as np

    rng = np.random.default_rng(2)
    ids = rng.integers(4, tokenizer.vocabulary_size, (count, LENGTH - 1))
    texts = tokenizer.detokenize(ids.astype("int32")).numpy()
    return [text.decode() for text in texts]


def trained_translator(settings: dict[str, str]) -> tuple[Any, list[str], int]:
    """Load a translator and the texts that are short enough for it."""
    from keras_tfm.tasks.translation import Translator

    translator = Translator.load(settings["translator"])
    lines = Path(settings["source"]).read_text("utf-8").splitlines()
    rows = translator.source_tokenizer.tokenize(lines).row_lengths().numpy()
    longest = max(translator.source_lengths)
    texts = [
        line for line, count in zip(lines, rows, strict=True) if count < longest
    ]
    return translator, texts, 1


def load_ours(folder: Path, threads: int) -> Any:
    """Load the SavedModels where only TensorFlow is imported."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        models = _saved_models(tf, folder)
    except RuntimeError:
        # A SentencePiece tokenizer: its operations.
        import tensorflow_text  # noqa: F401

        models = _saved_models(tf, folder)

    def translate(texts: list[str], rows: int, beams: int) -> bool:
        function = models[beams].signatures["serving_default"]
        for start in range(0, len(texts), rows):
            batch = tf.constant(texts[start : start + rows])
            function(text=batch)["text"].numpy()
        return True

    return translate


def _saved_models(tf: Any, folder: Path) -> dict[int, Any]:
    return {
        beams: tf.saved_model.load(str(folder / f"saved_model_{beams}"))
        for beams in (1, 4)
    }


def load_ctranslate2(folder: Path, threads: int, kind: str = "None") -> Any:
    """Load a CTranslate2 model; it is given tokens, and returns tokens."""
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder / f"ctranslate2_{kind}"),
        inter_threads=1,
        intra_threads=threads,
    )
    limits = json.loads((folder / "limits.json").read_text())
    pieces = json.loads((folder / "pieces.json").read_text())

    def translate(texts: list[str], rows: int, beams: int) -> bool:
        for start in range(0, len(texts), rows):
            translator.translate_batch(
                pieces[start : min(start + rows, len(texts))],
                beam_size=beams,
                min_decoding_length=limits["fewest"],
                max_decoding_length=limits["longest"],
            )
        return True

    return translate


def load_ctranslate2_int8(folder: Path, threads: int) -> Any:
    """Load the quantized CTranslate2 model."""
    return load_ctranslate2(folder, threads, "int8")


def load_marian(folder: Path, threads: int) -> Any:
    """Make Hugging Face's Marian of the same sizes, on torch."""
    import numpy as np
    import torch
    from transformers import MarianConfig
    from transformers import MarianMTModel

    torch.set_num_threads(threads)
    config = MarianConfig(
        vocab_size=VOCABULARY_SIZE,
        d_model=SIZES["hidden_dim"],
        encoder_layers=SIZES["num_layers"],
        decoder_layers=SIZES["num_layers"],
        encoder_ffn_dim=SIZES["intermediate_dim"],
        decoder_ffn_dim=SIZES["intermediate_dim"],
        encoder_attention_heads=SIZES["num_heads"],
        decoder_attention_heads=SIZES["num_heads"],
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
        max_position_embeddings=64,
    )
    model = MarianMTModel(config).eval()
    ids = np.random.default_rng(2).integers(4, VOCABULARY_SIZE, (64, LENGTH))
    ids[:, -1] = 2
    ids = torch.tensor(ids)

    def translate(texts: list[str], rows: int, beams: int) -> bool:
        with torch.inference_mode():
            model.generate(
                ids[:rows],
                num_beams=beams,
                do_sample=False,
                min_new_tokens=LENGTH,
                max_new_tokens=LENGTH,
            )
        return True

    return translate


def load_keras_hub(folder: Path, threads: int) -> Any:
    """Make KerasHub's BART of the same sizes; it has greedy and beam search."""
    import keras_hub
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    backbone = keras_hub.models.BartBackbone(
        vocabulary_size=VOCABULARY_SIZE,
        max_sequence_length=LENGTH + 1,
        **SIZES,
    )
    ids = np.random.default_rng(2).integers(4, VOCABULARY_SIZE, (64, LENGTH))
    models = {}

    def translate(texts: list[str], rows: int, beams: int) -> bool:
        if beams not in models:
            model = keras_hub.models.BartSeq2SeqLM(backbone)
            sampler = keras_hub.samplers.GreedySampler()
            if beams > 1:
                sampler = keras_hub.samplers.BeamSampler(num_beams=beams)
            model.compile(sampler=sampler, jit_compile=True)
            models[beams] = model
        started = np.zeros((rows, LENGTH + 1), "int32")
        started[:, 0] = 1
        inputs = {
            "encoder_token_ids": ids[:rows],
            "encoder_padding_mask": np.ones((rows, LENGTH), bool),
            "decoder_token_ids": started,
            "decoder_padding_mask": started != 0,
        }
        models[beams].generate(inputs, stop_token_ids=None)
        return True

    return translate


if __name__ == "__main__":
    main()

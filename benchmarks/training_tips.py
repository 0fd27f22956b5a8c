"""What batch size, warm-up, rate, averaging and length do to a training.

    python benchmarks/training_tips.py batch rate --minutes 8 --output tips \\
        --source ../shared/data/multi30k/tok/train.en.gz \\
        --target ../shared/data/multi30k/tok/train.de.gz \\
        --validation-source ../shared/data/multi30k/tok/val.en \\
        --validation-target ../shared/data/multi30k/tok/val.de

The questions of Popel and Bojar, 2018, asked of a small model. Each study
changes one setting and trains anew for every value, for the same time (without
compiling and scoring), from the same seed. Scores are those of the validation
pairs, translated greedily by the mean of the last five snapshots; the study
`average` compares how many. A run that is done is not done again.

For each study it prints a table, which it also writes as Markdown, and draws
the curves of the trainings.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.translation import Translator

BASE: dict[str, Any] = {
    "tokens_per_batch": 4096,
    "peak": 5e-3,
    "warmup_steps": 500,
    "max_sequence_length": 64,
    "row_length": 64,
    "snapshot_steps": 50,
}
# The setting that a study changes, and its values.
STUDIES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "batch": ("tokens_per_batch", (1024, 2048, 4096, 8192)),
    "warmup": ("warmup_steps", (100, 500, 2000)),
    "rate": ("peak", (1e-3, 2.5e-3, 5e-3, 1e-2)),
    "length": ("max_sequence_length", (12, 16, 24, 64)),
    "average": ("snapshots", (1, 3, 5, 10)),
}
_SNAPSHOTS = 10
_USUAL = 5
_RESULT = "result.json"


def main() -> None:
    """Run the studies that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="+", choices=sorted(STUDIES))
    for side in ("source", "target"):
        parser.add_argument(f"--{side}", required=True)
        parser.add_argument(f"--validation-{side}", required=True)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--vocabulary-size", type=int, default=9712)
    parser.add_argument("--preset", default="transformer_tiny_multi30k")
    parser.add_argument("--tokenize", default="none", help="for BLEU")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    from keras_tfm.data.sentence_pairs import read_parallel

    pairs = read_parallel(arguments.source, arguments.target)
    validation = read_parallel(
        arguments.validation_source, arguments.validation_target
    )
    for study in arguments.studies:
        setting, values = STUDIES[study]
        if study == "average":
            base = trained(arguments, pairs, validation, "peak", BASE["peak"])
            results = [
                {**base, "value": number, **base["averages"][str(number)]}
                for number in values
            ]
        else:
            results = [
                trained(arguments, pairs, validation, setting, value)
                for value in values
            ]
        report(arguments.output, study, setting, results)


def trained(
    arguments: argparse.Namespace,
    pairs: SentencePairs,
    validation: SentencePairs,
    setting: str,
    value: Any,
) -> dict[str, Any]:
    """Train with one value, or read what that gave before."""
    import keras

    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.translation import Translator

    # The base is one run in all studies.
    name = "base" if BASE[setting] == value else f"{setting}-{value:g}"
    folder = arguments.output / name
    path = folder / _RESULT
    if not path.is_file():
        keras.utils.set_random_seed(0)
        translator = Translator.from_pairs(
            pairs,
            vocabulary_size=arguments.vocabulary_size,
            preset=arguments.preset,
            normalize_first=True,
            max_target_length=64,
            source_lengths=(16, 32, 64),
        )
        settings = TrainingSettings(
            **{**BASE, setting: value}, average_last=_SNAPSHOTS
        )
        batches = translator.batches(pairs, settings)
        clock = make_clock(arguments.minutes)
        result = translator.fit(
            batches,
            settings,
            max_minutes=60 * 24,
            folder=folder,
            callbacks=[clock],
        )
        found = {
            "updates": int(result["steps"]),
            "tokens": int(result["steps"] * batches.tokens_per_step / 2),
            "pairs": batches.num_pairs,
            "averages": {
                str(number): scores(
                    translator, folder, number, validation, arguments.tokenize
                )
                for number in STUDIES["average"][1]
            },
        }
        path.write_text(json.dumps(found, indent=1))
        print(name, found, flush=True)
    found = json.loads(path.read_text())
    usual = found["averages"][str(_USUAL)]
    return {"value": value, "folder": str(folder), **found, **usual}


def scores(
    translator: Translator,
    folder: Path,
    number: int,
    validation: SentencePairs,
    tokenize: str,
) -> dict[str, float]:
    """Score the mean of the last snapshots of a training."""
    from keras_tfm.training.model_variables import replace_weights
    from keras_tfm.training.snapshots import LastSnapshots
    from keras_tfm.training.snapshots import Snapshots

    snapshots = Snapshots(folder / "snapshots", LastSnapshots(number))
    replace_weights(translator.model, snapshots.mean())
    bleu, chrf = translator.evaluate(validation, tokenize=tokenize)
    return {"bleu": bleu.value, "chrf": chrf.value}


def report(
    output: Path, study: str, setting: str, results: list[dict[str, Any]]
) -> None:
    """Print and write a study's table, and draw its curves."""
    from keras_tfm.visualization.learning_curves import plot_learning_curves

    lines = [
        f"| `{setting}` | updates | target tokens | BLEU | chrF |",
        "|---:|---:|---:|---:|---:|",
    ]
    for result in results:
        lines.append(
            f"| {result['value']:g} | {result['updates']:,} "
            f"| {result['tokens'] / 1e6:.1f} M | {result['bleu']:.2f} "
            f"| {result['chrf']:.2f} |"
        )
    table = "\n".join(lines) + "\n"
    print(f"\n{study}\n\n{table}", flush=True)
    (output / f"{study}.md").write_text(table, encoding="utf-8")
    if study != "average":
        plot_learning_curves(
            {
                f"{result['value']:g}": Path(result["folder"])
                / "training_log.csv"
                for result in results
            },
            output / f"{study}.png",
        )


def make_clock(minutes: float) -> Any:
    """Return a callback that stops after so many minutes.

    They count from the end of the first step, which compiles.
    """
    import keras

    began: list[float] = []

    def check(batch: int, logs: Any) -> None:
        began.append(time.monotonic())
        if began[-1] - began[0] >= 60 * minutes:
            clock.model.stop_training = True

    clock = keras.callbacks.LambdaCallback(on_train_batch_end=check)
    return clock


if __name__ == "__main__":
    main()

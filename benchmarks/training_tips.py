"""What batch size, warm-up, rate, averaging and length do to a training.

    python benchmarks/training_tips.py batch rate --output tips \\
        --source ../shared/data/multi30k/tok/train.en.gz \\
        --target ../shared/data/multi30k/tok/train.de.gz \\
        --validation-source ../shared/data/multi30k/tok/val.en \\
        --validation-target ../shared/data/multi30k/tok/val.de

The questions of Popel and Bojar, 2018, asked of a small model: the preset with
two layers a side. Each study changes one setting and trains anew for every
value, on as many positions, from the same seed: `--steps` updates of the usual
batch, more of a smaller one and fewer of a larger one. So the figures are the
same on a busy machine. Scores are those of the validation pairs, translated
greedily by the mean of the last five snapshots; the study `average` compares
how many. Snapshots and validations come after the same number of positions in
every run. A run that is done is not done again, and one that was interrupted
goes on.

For each study it prints a table, which it also writes as Markdown, and draws
BLEU by the tokens that were read, for the studies that it was asked for.
"""

from __future__ import annotations

import argparse
import json
import os
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
# In updates of the usual size.
_SNAPSHOT_STEPS = 50
_VALIDATION_STEPS = 100
_NAMES = {
    "batch": "Tokens a batch",
    "warmup": "Warm-up steps",
    "rate": "Peak rate",
    "length": "Longest pair",
}
_RESULT = "result.json"


def main() -> None:
    """Run the studies that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="+", choices=sorted(STUDIES))
    for side in ("source", "target"):
        parser.add_argument(f"--{side}", required=True)
        parser.add_argument(f"--validation-{side}", required=True)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--vocabulary-size", type=int, default=4000)
    parser.add_argument("--num-layers", type=int, default=2)
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
    draw(
        arguments.output,
        {
            study: [
                (value, folder_of(arguments.output, setting, value))
                for value in values
            ]
            for study, (setting, values) in STUDIES.items()
            if study in arguments.studies and study != "average"
        },
    )


def folder_of(output: Path, setting: str, value: Any) -> Path:
    """Return where the run with one value is kept; the base is one run."""
    usual = BASE[setting] == value
    return output / ("base" if usual else f"{setting}-{value:g}")


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
    from keras_tfm.tasks.validating import ValidationPlan

    folder = folder_of(arguments.output, setting, value)
    path = folder / _RESULT
    if not path.is_file():
        keras.utils.set_random_seed(0)
        translator = Translator.from_pairs(
            pairs,
            vocabulary_size=arguments.vocabulary_size,
            preset=arguments.preset,
            num_layers=arguments.num_layers,
            normalize_first=True,
            max_target_length=64,
            source_lengths=(16, 32, 64),
        )
        chosen = {**BASE, setting: value}
        updates = BASE["tokens_per_batch"] / chosen["tokens_per_batch"]
        settings = TrainingSettings(
            **chosen,
            average_last=_SNAPSHOTS,
            snapshot_steps=round(_SNAPSHOT_STEPS * updates),
        )
        batches = translator.batches(pairs, settings)
        result = translator.fit(
            batches,
            settings,
            steps=round(arguments.steps * updates),
            folder=folder,
            resume=(folder / "checkpoint.npz").exists(),
            validation=ValidationPlan(
                translator,
                validation,
                tokenize=arguments.tokenize,
                every_steps=round(_VALIDATION_STEPS * updates),
            ),
        )
        found = {
            "updates": int(result["steps"]),
            "tokens_per_step": batches.tokens_per_step / 2,
            "pairs": batches.num_pairs,
            "averages": {
                str(number): scores(
                    translator, folder, number, validation, arguments.tokenize
                )
                for number in STUDIES["average"][1]
            },
        }
        path.write_text(json.dumps(found, indent=1))
        print(folder.name, found, flush=True)
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
    """Print and write a study's table."""
    lines = [
        f"| `{setting}` | pairs | updates | target tokens | BLEU | chrF |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for result in results:
        tokens = result["updates"] * result["tokens_per_step"] / 1e6
        lines.append(
            f"| {result['value']:g} | {result['pairs']:,} "
            f"| {result['updates']:,} | {tokens:.1f} M "
            f"| {result['bleu']:.2f} | {result['chrf']:.2f} |"
        )
    table = "\n".join(lines) + "\n"
    print(f"\n{study}\n\n{table}", flush=True)
    (output / f"{study}.md").write_text(table, encoding="utf-8")


def draw(output: Path, studies: dict[str, list[tuple[Any, Path]]]) -> None:
    """Draw BLEU by the tokens read, a panel for each study."""
    from matplotlib.figure import Figure

    from keras_tfm.training.training_log_file import read_training_log

    if not studies:
        return
    rows = -(-len(studies) // 2)
    figure = Figure((9.0, 3.3 * rows), layout="constrained")
    for place, (study, runs) in enumerate(studies.items(), start=1):
        axes = figure.add_subplot(rows, min(len(studies), 2), place)
        for value, folder in runs:
            log = read_training_log(folder / "training_log.csv")
            result = json.loads((folder / _RESULT).read_text())
            millions = result["tokens_per_step"] / 1e6
            points = [
                (step * millions, bleu)
                for step, bleu in zip(
                    log["step"], log["validation_bleu"], strict=True
                )
                if bleu is not None
            ]
            axes.plot(*zip(*points, strict=True), label=f"{value:g}")
        axes.set_title(_NAMES[study])
        axes.set_xlabel("million target tokens")
        axes.set_ylabel("BLEU")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(output / "tips.png", dpi=90, facecolor="white")


if __name__ == "__main__":
    main()

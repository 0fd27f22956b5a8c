"""`keras-tfm quickstart`: from nothing to a served model in minutes."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_tfm.cli.console import print_table
from keras_tfm.cli.console import say
from keras_tfm.cli.export import check_replaceable
from keras_tfm.cli.export import usage
from keras_tfm.cli.export import write_saved_model
from keras_tfm.cli.meter import duration
from keras_tfm.cli.saved_model_check import answers_in_new_process
from keras_tfm.cli.summary import ending
from keras_tfm.cli.summary import print_summary
from keras_tfm.cli.tensorflow_setup import start_tensorflow

if TYPE_CHECKING:
    from keras_tfm.data.sentence_pairs import SentencePairs
    from keras_tfm.tasks.translation import Translator

# All that is tuned stands here.
SEED = 0
NUM_STEPS = 2000
NUM_PAIRS = 200_000
NUM_TEST_PAIRS = 4200
MODEL: dict[str, Any] = {
    "num_layers": 2,
    "num_decoder_layers": 1,
    "hidden_dim": 96,
    "intermediate_dim": 192,
    "num_heads": 4,
    "dropout": 0.0,
    "tie_embeddings": "decoder",
}
# The longest date takes fewer; an ISO date takes 10 and its end.
LENGTHS: dict[str, Any] = {"source_lengths": (64,), "max_target_length": 12}
SETTINGS: dict[str, Any] = {
    "batching": "buckets",
    "tokens_per_batch": 2048,
    "max_shapes": 2,
    "peak": 3e-3,
    "warmup_steps": 300,
    "label_smoothing": 0.0,
    "seed": SEED,
}
# `--smoke`: the same way in well under a minute, whatever comes out.
SMOKE_STEPS = 20
SMOKE_PAIRS = 3000
SMOKE_TEST_PAIRS = 420
SMOKE_MODEL: dict[str, Any] = {
    **MODEL,
    "num_layers": 1,
    "hidden_dim": 32,
    "intermediate_dim": 32,
}
SMOKE_WARMUP = 5
# One shape, one program to compile.
SMOKE_SHAPES = 1


def quickstart(
    folder: Annotated[
        Path,
        typer.Option("--folder", help="Where the model and its export go."),
    ] = Path("runs/quickstart"),
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", min=1, help="Updates.", show_default=f"{NUM_STEPS:,}"
        ),
    ] = None,
    smoke: Annotated[
        bool,
        typer.Option(
            "--smoke",
            help="Go all the way in a minute, and learn little.",
        ),
    ] = False,
) -> None:
    """Train a small model to read dates in 42 languages, test and export it."""
    began = time.monotonic()
    model_folder, export_folder = folder / "model", folder / "saved_model"
    _check_own(model_folder, export_folder)
    say(
        "Dates as people write them in 42 languages and regions -> ISO 8601, "
        "such as"
    )
    say("    fi_FI|keskiviikko 4. maaliskuuta 2026  ->  2026-03-04")
    say()
    device = start_tensorflow(SEED)
    from keras_tfm.data.dates import date_pairs

    num_test = SMOKE_TEST_PAIRS if smoke else NUM_TEST_PAIRS
    test = date_pairs(num_test, seed=SEED, split="test")
    translator = _train(steps, smoke, device)
    translations = _show_scores(translator, test)
    translator.save(model_folder)
    say(f"Saved the model to {model_folder}.")
    write_saved_model(translator, export_folder)
    say(f"Exported it to {export_folder}, a SavedModel: strings to strings.")
    _check_export(export_folder, test, translations)
    seconds = time.monotonic() - began
    say(f"All of it took {duration(seconds)} (minutes:seconds).")
    _show_next(translator, model_folder, export_folder)


def _check_own(model_folder: Path, export_folder: Path) -> None:
    """Refuse to write over anything but an earlier quickstart."""
    again = model_folder.exists() and any(model_folder.iterdir())
    if again and not (model_folder / "translator.json").is_file():
        raise ValueError(
            f"{model_folder} holds something else than a model of ours; give "
            "another --folder."
        )
    check_replaceable(export_folder, overwrite=True)
    if again:
        say(f"{model_folder.parent} holds an earlier run: it is replaced.")


def _train(steps: int | None, smoke: bool, device: str) -> Translator:
    from keras_tfm.cli.progress import TrainingProgress
    from keras_tfm.data.dates import LOCALES
    from keras_tfm.data.dates import date_pairs
    from keras_tfm.tasks.settings import TrainingSettings
    from keras_tfm.tasks.translation import Translator

    steps = steps or (SMOKE_STEPS if smoke else NUM_STEPS)
    pairs = date_pairs(SMOKE_PAIRS if smoke else NUM_PAIRS, SEED, "train")
    translator = Translator.from_pairs(
        pairs,
        tokenizer="characters",
        joint=False,
        **LENGTHS,
        **(SMOKE_MODEL if smoke else MODEL),
    )
    # A short run gets a short rise.
    warmup = min(SMOKE_WARMUP if smoke else 300, max(steps // 4, 1))
    settings = TrainingSettings(
        **{
            **SETTINGS,
            "warmup_steps": min(SETTINGS["warmup_steps"], warmup),
            "decay_steps": max(steps, warmup + 1),
            "max_shapes": SMOKE_SHAPES if smoke else SETTINGS["max_shapes"],
        }
    )
    batches = translator.batches(pairs, settings)
    print_summary(
        translator,
        batches,
        settings,
        data="generated from the patterns of CLDR by Babel",
        languages=f"dates of {len(LOCALES)} languages and regions -> ISO 8601",
        end=ending(steps, None),
        device=device,
    )
    progress = TrainingProgress(
        steps, None, batches.tokens_per_step, len(batches.shapes)
    )
    try:
        translator.fit(batches, settings, steps=steps, callbacks=[progress])
    finally:
        progress.close()
    return translator


def _show_scores(translator: Translator, test: SentencePairs) -> list[str]:
    from keras_tfm.data.dates import language_of
    from keras_tfm.tasks.scores import exact_match

    say(f"Translating {len(test):,} test dates.")
    translations = translator.translate(list(test.sources))
    rows = list(zip(test.sources, test.targets, translations, strict=True))
    by_language: dict[str, list[bool]] = defaultdict(list)
    for source, target, translation in rows:
        by_language[language_of(source)].append(target == translation)
    shares = {name: sum(ok) / len(ok) for name, ok in by_language.items()}
    print_table(
        "Exact match by language, worst first",
        ("language", "right", "of", "share"),
        [
            (
                name,
                str(sum(by_language[name])),
                str(len(by_language[name])),
                f"{shares[name]:.1%}",
            )
            for name in sorted(shares, key=lambda name: (shares[name], name))
        ],
        right=("right", "of", "share"),
    )
    print_table(
        "Ten translations",
        ("source", "translation", "right?"),
        [
            (source, translation, "yes" if ok else f"no: {target}")
            for source, target, translation in rows[:10]
            for ok in (target == translation,)
        ],
    )
    score = exact_match(translations, test.targets)
    say(
        f"{score.value:.2f} % of {len(test):,} dates are right, on days that "
        "training has not seen."
    )
    return translations


def _check_export(
    folder: Path, test: SentencePairs, translations: list[str]
) -> None:
    answers = answers_in_new_process(folder, test.sources)
    different = sum(
        answer != translation
        for answer, translation in zip(answers, translations, strict=True)
    )
    if different:
        raise RuntimeError(
            f"The SavedModel {folder} gives another translation for "
            f"{different} of {len(answers)} dates."
        )
    say(
        "A new process that imports only tensorflow gives the same strings "
        f"for all {len(answers):,} test dates."
    )


def _show_next(
    translator: Translator, model_folder: Path, export_folder: Path
) -> None:
    say()
    say("What to do next")
    say("  Translate:")
    say(
        f'    keras-tfm translate --folder {model_folder} "en_US|March 4, 2026"'
    )
    say("  Serve, in any program that has TensorFlow:")
    for line in usage(translator, export_folder):
        say(f"    {line}")
    say("  Train on your own text, a source, a tab and a target on each line:")
    say(
        "    keras-tfm train --tsv pairs.tsv --preset transformer_tiny "
        "--max-minutes 10 --folder runs/mine"
    )

"""What a training had reached after so many minutes, as a Markdown table.

    python benchmarks/validation_table.py runs/multi30k_en_de/training_log.csv

It reads the log that `keras-tfm train` writes and shows the validation that
came last before each multiple of `--minutes`, and the very last one.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_COLUMNS = {
    "minutes": "{:.0f}",
    "step": "{:,.0f}",
    "loss": "{:.3f}",
    "validation_loss": "{:.3f}",
    "validation_bleu": "{:.2f}",
    "validation_chrf": "{:.2f}",
    "validation_exact_match": "{:.1f}",
}


def main() -> None:
    """Print the table of a log."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--minutes", type=float, default=15.0)
    arguments = parser.parse_args()
    rows = validations(arguments.log)
    chosen = {}
    for row in rows:
        chosen[math.ceil(row["minutes"] / arguments.minutes)] = row
    chosen[None] = rows[-1]
    chosen = {row["step"]: row for row in chosen.values()}
    names = [name for name in _COLUMNS if name in rows[-1]]
    print("| " + " | ".join(name.replace("_", " ") for name in names) + " |")
    print("|" + "---:|" * len(names))
    for row in chosen.values():
        cells = [_COLUMNS[name].format(row[name]) for name in names]
        print("| " + " | ".join(cells) + " |")


def validations(path: Path) -> list[dict[str, float]]:
    """Return the rows of validations, each with the loss of the steps before.

    Raises:
        SystemExit: If there is none.
    """
    from keras_tfm.training.training_log_file import read_training_log

    log = read_training_log(path)
    rows = [
        dict(zip(log, row, strict=True))
        for row in zip(*log.values(), strict=True)
    ]
    found = []
    loss = math.nan
    for row in rows:
        if row.get("loss") is not None:
            loss = row["loss"]
        if row.get("validation_loss") is not None:
            given = {k: v for k, v in row.items() if v is not None}
            found.append({**given, "loss": loss})
    if not found:
        raise SystemExit(f"{path} holds no validation.")
    return found


if __name__ == "__main__":
    main()

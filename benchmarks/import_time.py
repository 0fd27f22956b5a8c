"""Time and memory of importing keras_tfm, beside what it stands on and a peer.

    python benchmarks/import_time.py --output import_time.json

Each import runs in some new processes, in turn, so that a busy moment hits all
alike. A row is the median of the seconds and of the most memory that the
process had. The last row is our own share: `import keras_tfm` where Keras has
been imported before. A package that is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

# What is measured, and what is imported before the clock starts.
CASES = (
    ("tensorflow", ""),
    ("keras", ""),
    ("keras_hub", ""),
    ("keras_tfm", ""),
    ("keras_tfm", "keras"),
)
_ROOT = Path(__file__).resolve().parents[1]
_MEASURE = """
import importlib, json, pathlib, sys, time

def peak():
    # Not `ru_maxrss`: a process takes over that of its parent.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

name, before = sys.argv[1:]
if before:
    importlib.import_module(before)
mib, modules, began = peak(), len(sys.modules), time.perf_counter()
importlib.import_module(name)
print(json.dumps({
    "seconds": time.perf_counter() - began,
    "mib": peak() - (mib if before else 0),
    "modules": len(sys.modules) - modules,
}))
"""


def main() -> None:
    """Measure every import in new processes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", help="JSON file to write")
    arguments = parser.parse_args()
    cases = [case for case in CASES if is_installed(case[0])]
    runs: dict[tuple[str, str], list[dict[str, float]]] = {c: [] for c in cases}
    # Once more than is counted: the first one reads the files from the disk.
    for number in range(arguments.rounds + 1):
        for case in cases:
            found = in_new_process(*case)
            if number:
                runs[case].append(found)
    results = [summary(*case, found) for case, found in runs.items()]
    print_table(results)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(results, indent=1))


def is_installed(name: str) -> bool:
    """Return whether a package can be imported."""
    sys.path.insert(0, str(_ROOT))
    try:
        return importlib.util.find_spec(name) is not None
    finally:
        sys.path.pop(0)


def in_new_process(name: str, before: str) -> dict[str, float]:
    """Import a package in a new process; return seconds, MiB and modules."""
    path = os.pathsep.join(
        filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")])
    )
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, name, before],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return json.loads(done.stdout.splitlines()[-1])


def summary(
    name: str, before: str, runs: list[dict[str, float]]
) -> dict[str, Any]:
    """Return the medians of some runs, and all their seconds."""
    return {
        "import": name,
        "after": before,
        **{
            key: statistics.median(run[key] for run in runs)
            for key in ("seconds", "mib", "modules")
        },
        "all_seconds": [run["seconds"] for run in runs],
    }


def print_table(results: list[dict[str, Any]]) -> None:
    """Print a row for each import, its time also in that of Keras."""
    keras = next(r["seconds"] for r in results if r["import"] == "keras")
    print(
        f"{'import':<24}{'seconds':>9}{'of keras':>10}{'MiB':>7}"
        f"{'modules':>9}{'spread':>16}"
    )
    for result in results:
        name = result["import"]
        if result["after"]:
            name += f" after {result['after']}"
        spread = "{:.2f} to {:.2f}".format(
            min(result["all_seconds"]), max(result["all_seconds"])
        )
        print(
            f"{name:<24}{result['seconds']:>9.2f}"
            f"{result['seconds'] / keras:>10.2f}{result['mib']:>7.0f}"
            f"{result['modules']:>9.0f}{spread:>16}"
        )


if __name__ == "__main__":
    main()

"""The quickstart goes all the way, twice, and prints nothing unexplained."""

import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

NOISE = re.compile(r"WARNING|Traceback|[EWIF]0000|Error|oneDNN|CUDA|absl")


def quickstart(folder, *arguments):
    result = subprocess.run(
        [
            *(sys.executable, "-m", "keras_tfm", "quickstart"),
            *("--folder", str(folder)),
            *arguments,
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("TF_")},
            "PYTHONIOENCODING": "utf-8",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs") / "quickstart"


@pytest.fixture(scope="module")
def first(folder):
    return quickstart(folder, "--smoke")


def test_nothing_unexplained_is_printed(first):
    assert first.stderr == ""
    assert not NOISE.search(first.stdout)


def test_data_model_and_shapes_come_before_the_training(first):
    summary = first.stdout[: first.stdout.index("\ncompiling")]
    for fact in ("pairs", "languages", "vocabulary", "parameters", "padding"):
        assert fact in summary
    assert re.search(r"\d+ rows × \(\d+ \+ \d+\)", summary)
    assert "compiles 1 program" in summary


def test_the_training_tells_its_progress(first):
    last = re.findall(r"(?m)^step .*$", first.stdout)[-1]
    for part in ("step 20/20", "left", "tokens/s", "loss", "accuracy"):
        assert part in last


def test_scores_stand_by_language_worst_first(first):
    table = first.stdout.partition("worst first")[2]
    table = table.partition("Ten translations")[0]
    shares = [float(share) for share in re.findall(r"([\d.]+)%", table)]
    assert len(shares) > 30
    assert shares == sorted(shares)


def test_ten_translations_are_shown(first):
    table = first.stdout.partition("Ten translations")[2]
    assert (
        len(re.findall(r"[a-z]{2}_[A-Z]{2}\|", table.partition("%")[0])) == 10
    )


def test_the_export_is_checked_in_a_new_process(first, folder):
    assert (
        "A new process that imports only tensorflow gives the same strings "
        "for all 420 test dates."
    ) in first.stdout
    assert (folder / "saved_model" / "saved_model.pb").is_file()
    assert (folder / "model" / "model.keras").is_file()


def test_it_ends_with_what_to_do_next(first, folder):
    after = first.stdout.partition("What to do next")[2]
    assert f"keras-tfm translate --folder {folder / 'model'}" in after
    assert f'tf.saved_model.load("{folder / "saved_model"}")' in after


def test_a_second_run_replaces_the_first_and_says_so(first, folder):
    second = quickstart(folder, "--smoke")
    assert second.stderr == ""
    assert f"{folder} holds an earlier run: it is replaced." in second.stdout
    assert not NOISE.search(second.stdout)
    # The same seed, the same numbers.
    right = re.compile(r"[\d.]+ % of 420 dates are right")
    assert right.findall(second.stdout) == right.findall(first.stdout)


def test_the_whole_quickstart_learns_to_read_dates(tmp_path):
    printed = quickstart(tmp_path / "quickstart").stdout
    (share,) = re.findall(r"([\d.]+) % of [\d,]+ dates are right", printed)
    assert float(share) >= 99
    assert "gives the same strings" in printed

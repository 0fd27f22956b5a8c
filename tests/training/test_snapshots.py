"""Snapshots: the right ones are kept, whatever the moment of a kill."""

import math
import os
import pathlib

import numpy as np
import pytest

from keras_tfm.training.archives import write_archive
from keras_tfm.training.snapshots import BestSnapshots
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots

# By hand: the steps of snapshots, their scores, and which are the best two.
SCORES = {2: 5.0, 4: 7.0, 6: 7.0, 8: 1.0, 10: math.nan, 12: 9.0, 14: 8.0}
BEST_TWO = {
    2: [2],
    4: [2, 4],
    6: [4, 6],
    8: [4, 6],
    10: [4, 6],
    12: [6, 12],
    14: [12, 14],
}
LAST_TWO = {
    2: [2],
    **{step: [step - 2, step] for step in (4, 6, 8, 10, 12, 14)},
}


def weights(step):
    rng = np.random.default_rng(step)
    return [rng.normal(size=(3, 2)).astype("float32"), np.float32(step) / 3]


def mean_by_hand(steps):
    columns = zip(*(weights(step) for step in steps), strict=True)
    return [
        np.mean([np.float64(c) for c in column], axis=0).astype("float32")
        for column in columns
    ]


def assert_same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == "float32"
        np.testing.assert_array_equal(mine, theirs)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_snapshot_is_read_back_bit_for_bit(tmp_path):
    snapshots = Snapshots(tmp_path / "new", LastSnapshots(3))
    assert snapshots.steps() == []
    snapshots.add(1200, weights(1), score=0.5)
    assert_same(snapshots.load(1200), weights(1))
    assert [*contents(tmp_path / "new")] == ["step_00001200.npz"]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [(LastSnapshots(2), LAST_TWO), (BestSnapshots(2), BEST_TWO)],
)
def test_the_mean_is_that_of_the_chosen_ones(tmp_path, keep, expected):
    snapshots = Snapshots(tmp_path, keep)
    for step, score in SCORES.items():
        snapshots.add(step, weights(step), score)
        assert_same(snapshots.mean(), mean_by_hand(expected[step]))
        # One more than asked for: it may still be needed.
        assert {*expected[step]} <= {*snapshots.steps()}
        assert len(snapshots.steps()) <= 3


def test_the_mean_is_summed_in_float64(tmp_path):
    snapshots = Snapshots(tmp_path, LastSnapshots(3))
    for step, value in enumerate((1e8, 1.0, -1e8)):
        snapshots.add(step, [np.array([value], "float32")])
    assert snapshots.mean()[0] == np.float32(1 / 3)


class Kill(BaseException):
    """The process is gone: whatever it tries from now on has no effect."""


class Mortal:
    """Count what changes files, and die at one of these operations."""

    def __init__(self, lives):
        self.lives = lives

    def spend(self, dying=lambda: None):
        self.lives -= 1
        if self.lives == -1:
            dying()
        if self.lives < 0:
            raise Kill


def train(folder, keep, checkpoint, lives, monkeypatch):
    """Go on from the checkpoint `{"step": ...}` and check each mean.

    A checkpoint is written after each snapshot, and at other steps too.
    """
    mortal = Mortal(lives)
    savez, unlink, replace = np.savez, pathlib.Path.unlink, pathlib.Path.replace

    def dying_savez(file, **arrays):
        mortal.spend(lambda: file.write(b"half"))
        savez(file, **arrays)

    def dying_unlink(path, **options):
        mortal.spend()
        unlink(path, **options)

    def dying_replace(path, target):
        mortal.spend()
        return replace(path, target)

    expected = LAST_TWO if isinstance(keep, LastSnapshots) else BEST_TWO
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        patch.setattr(np, "savez", dying_savez)
        patch.setattr(pathlib.Path, "unlink", dying_unlink)
        patch.setattr(pathlib.Path, "replace", dying_replace)
        snapshots = Snapshots(folder, keep)
        snapshots.forget_after(checkpoint["step"])
        for step in range(checkpoint["step"] + 1, 15):
            if step in SCORES:
                snapshots.add(step, weights(step), SCORES[step])
            if step >= 2:
                last = step - step % 2
                assert_same(snapshots.mean(step), mean_by_hand(expected[last]))
            if step in SCORES or step % 5 == 0:
                mortal.spend()
                checkpoint["step"] = step
    return mortal.lives


@pytest.mark.parametrize("keep", [LastSnapshots(2), BestSnapshots(2)])
def test_a_kill_between_any_two_operations_changes_nothing(
    tmp_path, keep, monkeypatch
):
    whole = tmp_path / "whole"
    operations = 999 - train(whole, keep, {"step": 0}, 999, monkeypatch)
    assert operations > 30
    for first in range(operations):
        # Killed once, or a second time soon after it goes on.
        for second in (first % 5, 999):
            folder = tmp_path / f"{first}-{second}"
            checkpoint = {"step": 0}
            for lives in (first, second, 999):
                try:
                    train(folder, keep, checkpoint, lives, monkeypatch)
                except Kill:
                    continue
            assert contents(folder) == contents(whole)


def test_nothing_is_deleted_before_a_checkpoint_can_know(tmp_path):
    snapshots = Snapshots(tmp_path, LastSnapshots(1))
    snapshots.add(10, weights(10))
    snapshots.add(20, weights(20))
    # Killed here: the checkpoint is still that of step 10.
    snapshots.forget_after(10)
    assert_same(snapshots.mean(10), weights(10))


def test_refuses_a_snapshot_of_the_past(tmp_path):
    snapshots = Snapshots(tmp_path, LastSnapshots(2))
    snapshots.add(20, weights(20))
    for step in (10, 20):
        with pytest.raises(ValueError, match="Call `forget_after` with the st"):
            snapshots.add(step, weights(step))
    assert_same(snapshots.mean(), weights(20))


def test_choosing_by_score_needs_scores(tmp_path):
    Snapshots(tmp_path, LastSnapshots(2)).add(10, weights(10))
    snapshots = Snapshots(tmp_path, BestSnapshots(2))
    with pytest.raises(ValueError, match="the snapshot of step 20 has none"):
        snapshots.add(20, weights(20))
    with pytest.raises(ValueError, match=r"step_00000010\.npz has no score"):
        snapshots.add(20, weights(20), 1.0)


def test_refuses_counts_and_steps_that_are_none(tmp_path):
    for choice in (LastSnapshots, BestSnapshots):
        with pytest.raises(ValueError, match="Received: count=0"):
            choice(0)
    with pytest.raises(ValueError, match="Received: step=-1"):
        Snapshots(tmp_path, LastSnapshots(1)).add(-1, weights(1))


def test_says_that_there_is_nothing_to_average(tmp_path):
    snapshots = Snapshots(tmp_path / "none", LastSnapshots(2))
    snapshots.forget_after(0)
    with pytest.raises(
        ValueError, match=r"There is no snapshot in .*none to av"
    ):
        snapshots.mean()
    with pytest.raises(
        FileNotFoundError, match=r"There is no .*_00000010\.npz"
    ):
        snapshots.load(10)


@pytest.mark.parametrize("keep", [LastSnapshots(2), BestSnapshots(2)])
@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04broken", None])
def test_names_a_damaged_file(tmp_path, keep, content):
    snapshots = Snapshots(tmp_path, keep)
    for step in (10, 20):
        snapshots.add(step, weights(step), 1.0)
    path = tmp_path / "step_00000020.npz"
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    with pytest.raises(
        ValueError, match=r"00020\.npz is not a snapshot, or is"
    ):
        snapshots.mean()


def test_names_a_file_of_another_model(tmp_path):
    snapshots = Snapshots(tmp_path, LastSnapshots(2))
    snapshots.add(10, weights(10))
    snapshots.add(20, weights(20)[::-1])
    with pytest.raises(ValueError, match=r"_00000020\.npz is of another model"):
        snapshots.mean()
    with pytest.raises(
        ValueError, match=r"10\.npz is .* and \[\(3,\)\] was exp"
    ):
        snapshots.load(10, [(3,)])
    write_archive(tmp_path / "step_00000030.npz", {"model/0": np.ones(3)})
    with pytest.raises(
        ValueError, match=r"30\.npz is not a snapshot: it holds"
    ):
        snapshots.load(30)


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    names = ["notes.txt", "step_1.npz", "step_00000010.npz.txt"]
    for name in names:
        (tmp_path / name).write_text("mine")
    half = tmp_path / ".step_00000010.npz.123"
    half.write_text("left by a kill")
    snapshots = Snapshots(tmp_path, LastSnapshots(1))
    assert snapshots.steps() == []
    snapshots.forget_after(0)
    assert sorted(contents(tmp_path)) == sorted(names)

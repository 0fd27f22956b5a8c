"""Archives are written whole or not at all, and read without running code."""

import numpy as np
import pytest

from keras_tfm.training.archives import read_archive
from keras_tfm.training.archives import write_archive


def test_what_was_written_is_read_back(tmp_path):
    path = write_archive(
        tmp_path / "a.npz", {"x": np.arange(3), "y": np.ones(2)}
    )
    found = read_archive(path, "snapshot", "Delete it.")
    assert {name: list(array) for name, array in found.items()} == {
        "x": [0, 1, 2],
        "y": [1.0, 1.0],
    }
    assert [*read_archive(path, "snapshot", "", ["y", "z"])] == ["y"]
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_the_same_arrays_make_the_same_file(tmp_path):
    arrays = {"x": np.arange(3)}
    first = write_archive(tmp_path / "a.npz", arrays).read_bytes()
    assert write_archive(tmp_path / "b.npz", arrays).read_bytes() == first


def test_a_failed_write_leaves_the_file_before(tmp_path, monkeypatch):
    path = write_archive(tmp_path / "a.npz", {"x": np.arange(3)})
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="No space"):
        write_archive(path, {"x": np.arange(5)})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_says_what_a_file_should_have_been(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"text")
    with pytest.raises(
        ValueError, match=r"a\.npz is not a cake, or is dam"
    ) as e:
        read_archive(path, "cake", "Bake another.")
    assert str(e.value).endswith("Bake another.")
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(
        ValueError, match="is not a cake, or is damaged: Object"
    ):
        read_archive(path, "cake", "")

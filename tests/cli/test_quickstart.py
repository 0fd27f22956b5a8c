"""What the quickstart refuses, and what it is made of.

The whole of it runs in `tests/integration/test_quickstart.py`.
"""

import pytest

from keras_tfm.cli import quickstart as module
from keras_tfm.data.dates import date_pairs
from keras_tfm.tasks.settings import TrainingSettings


@pytest.mark.parametrize("name", ["model", "saved_model"])
def test_what_is_not_its_own_is_not_overwritten(refused, tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "notes.txt").write_text("mine")
    message = refused("quickstart", "--smoke", "--folder", tmp_path)
    assert message.startswith(f"{tmp_path / name} holds something else")
    assert (tmp_path / name / "notes.txt").read_text() == "mine"


def test_an_earlier_run_is_replaced_and_that_is_said(tmp_path, capsys):
    for name in ("model/translator.json", "saved_model/saved_model.pb"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("old")
    module._check_own(tmp_path / "model", tmp_path / "saved_model")
    expected = f"{tmp_path} holds an earlier run: it is replaced.\n"
    assert capsys.readouterr().out == expected


def test_every_date_fits_the_model():
    longest = max(
        len(source)
        for split in ("train", "test")
        for source in date_pairs(5000, module.SEED, split).sources
    )
    assert longest + 1 <= module.LENGTHS["source_lengths"][-1]
    assert len("2026-03-04") + 1 <= module.LENGTHS["max_target_length"]


def test_the_settings_are_right_and_the_test_is_large_enough():
    TrainingSettings(**module.SETTINGS, decay_steps=module.NUM_STEPS)
    assert module.NUM_TEST_PAIRS >= 2000


def test_it_is_tuned_for_buckets():
    assert TrainingSettings(**module.SETTINGS).batching == "buckets"


def test_an_export_that_answers_otherwise_is_told(monkeypatch, tmp_path):
    test = date_pairs(3, 0, "test")
    monkeypatch.setattr(
        module, "answers_in_new_process", lambda *_: ["a", "b", "c"]
    )
    with pytest.raises(RuntimeError, match="for 1 of 3 dates"):
        module._check_export(tmp_path, test, ["a", "b", "x"])

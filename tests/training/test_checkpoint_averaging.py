"""The mean comes and goes inside `fit`, and training does not notice."""

import numpy as np
import pytest
from training.tiny_training import assert_same
from training.tiny_training import at_each_step
from training.tiny_training import compiled_model
from training.tiny_training import data
from training.tiny_training import fit
from training.tiny_training import weights_of

from keras_tfm.training.checkpoint_averaging import CheckpointAveraging
from keras_tfm.training.snapshots import BestSnapshots
from keras_tfm.training.snapshots import LastSnapshots
from keras_tfm.training.snapshots import Snapshots

STEPS = 11
PLAIN = {}
EMA = {"use_ema": True, "ema_momentum": 0.7}
# The average becomes the weights every three updates.
WRITTEN = {**EMA, "ema_overwrite_frequency": 3}


def averaging(folder, keep=2, every_steps=3):
    return CheckpointAveraging(
        Snapshots(folder, LastSnapshots(keep)), every_steps
    )


def mean_by_hand(weights):
    return [
        np.mean(np.stack(column), axis=0, dtype="float64").astype("float32")
        for column in zip(*weights, strict=True)
    ]


@pytest.mark.parametrize(
    "optimizer", [PLAIN, WRITTEN], ids=["plain", "written"]
)
def test_swapping_inside_fit_does_not_change_the_training(tmp_path, optimizer):
    x, _ = data(2)
    runs = []
    for swaps in (False, True):
        model = compiled_model(**optimizer)
        callback = averaging(tmp_path / str(swaps))
        seen, means = [], []

        def look(model, swaps=swaps, callback=callback, seen=seen, means=means):
            seen.append(weights_of(model))
            if swaps:
                with callback.averaged_weights(model):
                    means.append(weights_of(model))
                    model.predict(x, verbose=0)
                assert_same(weights_of(model), seen[-1])

        fit(model, [callback, at_each_step(look, model)], STEPS)
        runs.append((seen, means, weights_of(model)))
    (plain, _, end), (swapped, means, same_end) = runs
    for mine, theirs in zip(swapped, plain, strict=True):
        assert_same(mine, theirs)
    assert_same(same_end, end)
    # Snapshots after updates 3, 6, 9, of which the last two count.
    for step, chosen in {1: [1], 2: [2], 3: [3], 5: [3], 7: [3, 6]}.items():
        expected = mean_by_hand([plain[number - 1] for number in chosen])
        assert_same(means[step - 1], expected)
    assert_same(means[10], mean_by_hand([plain[5], plain[8]]))


def test_the_weights_come_back_after_an_error(tmp_path):
    model, callback = compiled_model(), averaging(tmp_path)
    fit(model, [callback], STEPS)
    before = weights_of(model)

    def fail():
        with callback.averaged_weights(model):
            assert weights_of(model)[0].tobytes() != before[0].tobytes()
            raise KeyError("halfway")

    with pytest.raises(KeyError, match="halfway"):
        fail()
    assert_same(weights_of(model), before)


def test_a_training_ends_with_the_mean_and_not_with_its_ema(tmp_path):
    model, callback, seen = compiled_model(**EMA), averaging(tmp_path), []
    look = at_each_step(lambda m: seen.append(weights_of(m)), model)
    fit(model, [callback, look], 7)
    callback.finish(model)
    assert_same(weights_of(model), mean_by_hand([seen[2], seen[5]]))


def test_snapshots_of_the_future_do_not_count(tmp_path):
    model, callback, seen = compiled_model(), averaging(tmp_path), []
    look = at_each_step(lambda m: seen.append(weights_of(m)), model)
    fit(model, [callback, look], 8)
    # As after a kill between this snapshot and its checkpoint.
    callback.snapshots.add(9, [np.zeros_like(w) for w in seen[0]])
    callback.finish(model)
    assert_same(weights_of(model), mean_by_hand([seen[2], seen[5]]))
    # And a new training begins without any.
    other = compiled_model()
    before = weights_of(other)
    callback.set_model(other)
    callback.on_train_begin()
    assert callback.snapshots.steps() == []
    callback.finish(other)
    assert_same(weights_of(other), before)


def test_the_best_are_averaged_by_a_score_of_the_weights(tmp_path):
    scores = iter([0.5, 0.9, 0.1, 0.7])
    callback = CheckpointAveraging(
        Snapshots(tmp_path, BestSnapshots(2)), 2, lambda: next(scores)
    )
    model, seen = compiled_model(), []
    look = at_each_step(lambda m: seen.append(weights_of(m)), model)
    fit(model, [callback, look], 9)
    callback.finish(model)
    assert_same(weights_of(model), mean_by_hand([seen[3], seen[7]]))


def test_choosing_by_score_needs_a_score(tmp_path):
    with pytest.raises(
        ValueError, match=r"BestSnapshots chooses by score\. Give"
    ):
        CheckpointAveraging(Snapshots(tmp_path, BestSnapshots(2)), 3)


def test_names_the_snapshot_of_another_model(tmp_path):
    callback = averaging(tmp_path)
    fit(compiled_model(width=5), [callback], 4)
    other = compiled_model(width=2)
    other.optimizer.iterations.assign(4)
    before = weights_of(other)
    with pytest.raises(
        ValueError, match=r"step_00000003\.npz is of another mo"
    ):
        callback.finish(other)
    assert_same(weights_of(other), before)

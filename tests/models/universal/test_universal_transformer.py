"""A model of shared depth: steps, packed rows, ponder times, its file."""

import functools

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from models.transformer.made import V_TARGET
from models.transformer.made import T
from models.transformer.made import batch
from models.transformer.made import logits
from models.transformer.made import shaken

from keras_tfm.models import UniversalTransformer
from keras_tfm.models import packed_model

SIZES = {
    "num_steps": 3,
    "hidden_dim": 6,
    "intermediate_dim": 17,
    "num_heads": 2,
    "tie_embeddings": "all",
}
KINDS = [None, "graves", "tensor2tensor"]


@functools.cache
def made(halting=None, **options):
    return shaken(
        UniversalTransformer(V_TARGET, halting=halting, **SIZES, **options)
    )


@pytest.mark.parametrize("halting", KINDS)
def test_each_step_gives_the_logits_of_a_full_pass(halting):
    model = made(halting)
    source, target = batch(target_lengths=(5, 5, 5))
    expected = logits(model, source, target)
    cache = swift(lambda ids: model.initial_cache(ids, T + 3))(source)
    step = swift(model.step)
    for index in range(T):
        found, cache = step(
            target[:, index : index + 1],
            cache,
            keras.ops.convert_to_tensor(index, "int32"),
        )
        np.testing.assert_allclose(
            np.asarray(found)[:, 0], expected[:, index], atol=1e-5
        )


@pytest.mark.parametrize("halting", [None, "graves"])
def test_a_pair_in_a_packed_row_has_the_logits_of_the_pair_alone(halting):
    model = made(halting)
    source, target = np.array([[3, 4, 5]]), np.array([[1, 6]])
    second = np.array([[7, 8]]), np.array([[1, 9, 3]])
    network = packed_model(model)
    found = compiled(lambda inputs: network(inputs, training=False))(
        {
            "source_ids": np.hstack([source, second[0]]).astype("int32"),
            "target_ids": np.hstack([target, second[1]]).astype("int32"),
            "source_segments": np.array([[1, 1, 1, 2, 2]], "int32"),
            "target_segments": np.array([[1, 1, 2, 2, 2]], "int32"),
        }
    )
    expected = [logits(model, source, target), logits(model, *second)]
    np.testing.assert_allclose(found, np.concatenate(expected, 1), atol=1e-5)


def test_more_steps_have_no_more_weights():
    deeper = UniversalTransformer(V_TARGET, **{**SIZES, "num_steps": 7})
    assert deeper.count_params() == made().count_params()


def test_ponder_times_are_those_of_each_side():
    source, target = batch()
    times = made("graves").ponder_times(source, target)
    for side, ids in (("encoder", source), ("decoder", target)):
        found = np.asarray(times[side])
        assert found.shape == ids.shape
        assert (found[ids != 0] > 1).all()
        assert (found[ids != 0] <= SIZES["num_steps"] + 1).all()


def test_a_file_gives_the_same_model(tmp_path):
    model = made("tensor2tensor", halting_threshold=0.9, ponder_cost=0.5)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    assert restored.arguments == model.arguments
    assert restored.decoder.halting.ponder_cost == 0.5
    np.testing.assert_allclose(
        logits(restored, *batch()), logits(model, *batch()), atol=1e-6
    )


def test_an_unknown_way_to_halt_is_an_error():
    with pytest.raises(ValueError, match="`halting`"):
        UniversalTransformer(V_TARGET, halting="soon", **SIZES)

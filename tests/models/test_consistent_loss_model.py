"""A model of two passes: with dropout they differ, without they agree."""

from unittest import mock

import numpy as np
import pytest
from keras import ops
from models.transformer.made import V_TARGET
from models.transformer.made import fresh

from keras_tfm.models.consistent_loss_model import ConsistentLossModel
from keras_tfm.models.loss_model import LossModel
from keras_tfm.models.loss_model import with_labels

B, S, T = 3, 5, 7
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")


def batch(packed=False):
    generator = np.random.default_rng(7)
    ids = {
        f"{side}_ids": generator.integers(1, V_TARGET, (B, n)).astype("int32")
        for side, n in (("source", S), ("target", T))
    }
    labels = generator.integers(1, V_TARGET, (B, T)).astype("int32")
    labels[1, 4:] = ids["target_ids"][1, 4:] = 0
    if packed:
        for side in ("source", "target"):
            real = ids[f"{side}_ids"] != 0
            ids[f"{side}_segments"] = real.astype("int32")
    inputs, _ = with_labels(ids, labels)
    return {name: ops.convert_to_tensor(x) for name, x in inputs.items()}


def added(network, inputs, training):
    """Return the loss that a call adds; Keras on JAX would not keep it."""
    found = []
    with mock.patch.object(
        LossModel, "add_loss", lambda self, loss: found.append(loss)
    ):
        places = network(inputs, training=training)
    return float(found[0]), ops.convert_to_numpy(places)


@pytest.mark.parametrize("packed", [False, True])
def test_without_dropout_both_passes_agree(packed):
    model = fresh("all", True, num_layers=1, **dict.fromkeys(DROPOUTS, 0.0))
    expected, places = added(
        LossModel(model, packed, label_smoothing=0.1), batch(packed), True
    )
    network = ConsistentLossModel(model, packed, label_smoothing=0.1)
    found, same = added(network, batch(packed), True)
    assert found == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(same, places, rtol=1e-5, atol=1e-6)


def test_with_dropout_the_distance_of_the_passes_counts():
    model = fresh("all", True, num_layers=1, dropout=0.5)
    inputs = batch()
    seeds = [v for v in model.variables if "seed" in v.path]
    states = [ops.convert_to_numpy(v) for v in seeds]
    found = {}
    for consistency in (1e-6, 1.0, 2.0):
        for seed, state in zip(seeds, states, strict=True):
            seed.assign(state)
        network = ConsistentLossModel(model, consistency=consistency)
        found[consistency], _ = added(network, inputs, True)
    distance = found[1.0] - found[1e-6]
    assert distance > 0.01
    assert found[2.0] - found[1.0] == pytest.approx(distance, rel=1e-3)


def test_without_training_there_is_one_pass():
    model = fresh("all", True, num_layers=1, dropout=0.5)
    expected = added(LossModel(model), batch(), False)
    found = added(ConsistentLossModel(model), batch(), False)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])


def test_it_is_made_again_from_its_config():
    model = fresh("all", True, num_layers=1)
    network = ConsistentLossModel(model, True, 0.2, "sum", 3.0, name="mine")
    again = ConsistentLossModel.from_config(network.get_config())
    assert again.get_config() == network.get_config()


def test_a_consistency_of_nothing_is_refused():
    model = fresh("all", True, num_layers=1)
    with pytest.raises(ValueError, match="Received: consistency=0"):
        ConsistentLossModel(model, consistency=0)

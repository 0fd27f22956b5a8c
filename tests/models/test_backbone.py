"""Backbone: a model is its arguments, whoever subclasses it."""

import keras
import numpy as np
import pytest

from keras_tfm.models.backbone import Backbone


@keras.saving.register_keras_serializable(package="test_backbone")
class Doubler(Backbone):
    """A backbone of one dense layer, with one argument."""

    def __init__(self, width, dtype=None, **kwargs):
        policy = keras.dtype_policies.get(
            dtype or keras.config.dtype_policy().name
        )
        inputs = keras.Input((3,))
        dense = keras.layers.Dense(width, dtype=policy, name="dense")
        super().__init__(inputs=inputs, outputs=dense(inputs), **kwargs)
        self.policy = policy
        self.arguments = {"width": width}


def test_the_config_is_the_arguments_and_no_graph():
    config = Doubler(5, name="doubler").get_config()
    assert set(config) == {"width", "name", "trainable", "dtype"}
    assert config["width"] == 5
    assert config["name"] == "doubler"


def test_a_model_is_made_again_from_its_config():
    model = Doubler(5, dtype="mixed_bfloat16", name="doubler")
    again = Doubler.from_config(model.get_config())
    assert type(again) is Doubler
    assert again.get_config() == model.get_config()
    assert again.get_layer("dense").compute_dtype == "bfloat16"


@pytest.mark.parametrize("trainable", [True, False])
def test_a_frozen_model_stays_frozen(trainable):
    model = Doubler(5)
    model.trainable = trainable
    again = Doubler.from_config(model.get_config())
    assert bool(again.trainable_weights) is trainable


def test_making_a_model_leaves_the_config_as_it_was():
    config = Doubler(5).get_config()
    kept = dict(config)
    Doubler.from_config(config)
    assert config == kept


def test_a_saved_model_keeps_its_class_and_weights(tmp_path):
    model = Doubler(5)
    model.get_layer("dense").bias.assign(np.arange(5.0))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is Doubler
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(again(x)),
        keras.ops.convert_to_numpy(model(x)),
    )

"""Int8 weights: how exact they are, and what is saved."""

import keras
import numpy as np
import tensorflow as tf
from models.transformer.made import batch
from models.transformer.made import fresh
from models.transformer.made import logits

from keras_tfm.export.int8_weights import Int8Weights


def test_a_weight_is_off_by_half_a_step_of_its_scale_at_most():
    rng = np.random.default_rng(3)
    layer = keras.layers.Dense(5)
    layer.build((None, 17))
    kernel = rng.normal(size=(17, 5)) * np.array([1, 10, 0.1, 3, 0.5])
    layer.kernel.assign(kernel)
    layer.bias.assign(rng.normal(size=5))
    found = Int8Weights(layer.variables).within(layer)(np.eye(17))
    step = np.abs(kernel).max(axis=0) / 127
    off = np.abs(np.asarray(found) - np.asarray(layer(np.eye(17))))
    assert (off <= 0.51 * step + 1e-6).all()
    assert (off > 0).any()


def test_a_models_logits_are_near_and_its_weights_as_they_were():
    model = fresh("all", hidden_dim=34)
    source, target = batch()
    before = logits(model, source, target)
    weights = Int8Weights(model.variables)
    inputs = {"source_ids": source, "target_ids": target}
    found = np.asarray(weights.within(model)(inputs))
    assert 0 < np.abs(found - before).mean() < 0.05 * before.std()
    np.testing.assert_array_equal(logits(model, source, target), before)


def test_the_matrices_take_a_quarter_of_the_room():
    model = fresh("all", hidden_dim=34, intermediate_dim=117)
    weights = Int8Weights(model.variables)
    size = sum(v.shape.num_elements() * v.dtype.size for v in weights.variables)
    whole = sum(np.prod(v.shape) * 4 for v in model.variables)
    assert size < 0.35 * whole
    assert {v.dtype for v in weights.saved_variables} >= {tf.int8, tf.float32}
    matrices = [v for v in model.variables if len(v.shape) == 2]
    kept = [v for v in weights.saved_variables if v.dtype == tf.int8]
    assert len(kept) == len(matrices)

"""Dropout: in training only, a new mask a call, a stream that is saved."""

import keras
import numpy as np
import pytest
from backend_functions import compiled
from keras import ops

from keras_tfm.layers import Dropout

SHAPE = (7, 11, 13)
X = np.random.default_rng(3).normal(size=SHAPE).astype("float32")


def dropped(layer, values=X):
    return ops.convert_to_numpy(layer(values, training=True))


def functional(*layers):
    """Make a model of sequences of any length and number."""
    tensor = inputs = keras.Input((None, 13))
    for layer in layers:
        tensor = layer(tensor)
    return keras.Model(inputs, tensor)


def values_of(variables):
    return [ops.convert_to_numpy(variable.value) for variable in variables]


@pytest.mark.parametrize("flags", [{}, {"training": False}])
def test_outside_training_the_values_pass_as_they_are(flags):
    layer = Dropout(0.5)
    np.testing.assert_array_equal(layer(X, **flags), X)
    before = values_of(layer.variables)
    layer(X, **flags)
    np.testing.assert_array_equal(values_of(layer.variables), before)


def test_without_a_share_nothing_is_dropped_and_nothing_kept_in_mind():
    layer = Dropout(0)
    np.testing.assert_array_equal(dropped(layer), X)
    assert layer.variables == []


def test_the_model_knows_the_random_stream():
    layer = Dropout(0.5)
    (state,) = functional(layer).variables
    assert state is layer.seed_generator.state
    assert layer.weights == []


def test_each_call_has_a_mask_of_its_own():
    layer = Dropout(0.5, seed=3)
    masks = [dropped(layer) != 0 for _ in range(5)]
    for index, one in enumerate(masks):
        for other in masks[index + 1 :]:
            assert 0.4 < (one == other).mean() < 0.6


def test_what_is_kept_is_scaled_so_that_the_mean_stays():
    values = dropped(Dropout(0.2, seed=3))
    kept = values != 0
    np.testing.assert_allclose(values[kept], X[kept] * 1.25, rtol=1e-6)
    # Three standard deviations of 1,001 values.
    assert abs(kept.mean() - 0.8) < 3 * (0.8 * 0.2 / 1001) ** 0.5


def test_a_stream_goes_on_where_its_variables_were_restored():
    model = functional(Dropout(0.5), Dropout(0.3))
    dropped(model)
    stored = values_of(model.variables)
    expected = [dropped(model) for _ in range(3)]
    other = functional(Dropout(0.5), Dropout(0.3))
    assert not np.array_equal(dropped(other), expected[0])
    for again in (model, other):
        for variable, value in zip(again.variables, stored, strict=True):
            variable.assign(value)
        for values in expected:
            np.testing.assert_array_equal(dropped(again), values)


def test_a_model_from_a_file_begins_its_streams_anew(tmp_path):
    model = functional(Dropout(0.5, seed=3), Dropout(0.3))
    first = dropped(model.layers[1])
    model.save(tmp_path / "model.keras")
    other = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(dropped(other.layers[1]), first)
    assert not np.array_equal(
        dropped(other.layers[2]), dropped(model.layers[2])
    )


def test_layers_without_a_seed_have_nothing_in_common():
    first, second = Dropout(0.5), Dropout(0.5)
    same = (dropped(first) != 0) == (dropped(second) != 0)
    assert 0.4 < same.mean() < 0.6
    assert first.get_config()["seed"] is None


def test_a_seed_makes_a_layer_repeatable():
    first, again, other = (Dropout(0.5, seed=seed) for seed in (3, 3, 4))
    for _ in range(2):
        expected = dropped(first)
        np.testing.assert_array_equal(dropped(again), expected)
        assert not np.array_equal(dropped(other), expected)


def test_the_global_seed_makes_every_layer_repeatable():
    found = []
    for seed in (5, 5, 6):
        keras.utils.set_random_seed(seed)
        layers = [Dropout(0.5), Dropout(0.5)]
        found.append([dropped(layer) for layer in layers * 2])
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_a_compiled_call_drops_what_an_eager_one_does():
    eager, fast = Dropout(0.5, seed=3), Dropout(0.5, seed=3)
    state = fast.seed_generator.state

    def step(value, values):
        with keras.StatelessScope(state_mapping=[(state, value)]) as scope:
            output = fast(values, training=True)
        return output, scope.get_current_value(state)

    step = compiled(step)
    value = state.value
    for _ in range(2):
        output, value = step(value, ops.convert_to_tensor(X))
        np.testing.assert_array_equal(
            ops.convert_to_numpy(output), dropped(eager)
        )


def test_every_length_passes_through_one_functional_model():
    model = functional(Dropout(0.5, seed=3))
    assert model.output_shape == (None, None, 13)
    for rows, length in ((7, 11), (1, 2), (3, 5)):
        values = dropped(model, X[:rows, :length])
        assert values.shape == (rows, length, 13)
        assert (values == 0).any()
        assert (values != 0).any()


def test_a_fit_draws_one_mask_a_step():
    model = functional(Dropout(0.5, seed=3), keras.layers.Dense(1))
    model.compile("sgd", "mse", jit_compile=True)
    inputs, targets = X[:6], X[:6, :, :1]
    for steps in (2, 4):
        model.fit(inputs, targets, batch_size=3, verbose=0)
        (state,) = values_of(model.layers[1].variables)
        assert state.tolist() == [3, steps]
    # Measuring draws none.
    model.evaluate(inputs, targets, verbose=0)
    (state,) = values_of(model.layers[1].variables)
    assert state.tolist() == [3, 4]


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_mean_and_variance_are_those_of_the_dropout_of_keras(rate):
    values = np.random.default_rng(1).normal(1.0, 2.0, (1, 200_003))
    values = values.astype("float32")
    ours = dropped(Dropout(rate, seed=3), values)
    theirs = dropped(keras.layers.Dropout(rate, seed=3), values)
    # Within four standard deviations of a difference of two means.
    count = values.size

    def error(numbers):
        return 4 * (2 * numbers.var() / count) ** 0.5

    assert abs(ours.mean() - theirs.mean()) < error(theirs)
    assert abs((ours**2).mean() - (theirs**2).mean()) < error(theirs**2)
    assert abs((ours == 0).mean() - (theirs == 0).mean()) < error(theirs == 0)
    # And what is kept is what Keras makes of it.
    both = (ours != 0) & (theirs != 0)
    np.testing.assert_allclose(ours[both], theirs[both], rtol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_in_16_bits_values_stay_in_16_bits(policy):
    layer = Dropout(0.5, dtype=policy, seed=3)
    output = layer(X, training=True)
    assert keras.backend.standardize_dtype(output.dtype) == layer.compute_dtype
    full = dropped(Dropout(0.5, seed=3))
    output = ops.convert_to_numpy(ops.cast(output, "float32"))
    np.testing.assert_array_equal(output != 0, full != 0)
    np.testing.assert_allclose(output, full, atol=0.04)


def test_a_mask_passes_through():
    ids = np.array([[4, 2, 0], [1, 0, 0]])
    embedded = keras.layers.Embedding(7, 5, mask_zero=True)(ids)
    for training in (False, True):
        output = Dropout(0.5)(embedded, training=training)
        mask = ops.convert_to_numpy(output._keras_mask)
        np.testing.assert_array_equal(mask, ids != 0)


@pytest.mark.parametrize("rate", [-0.1, 1.0, "half"])
def test_a_share_out_of_range_is_refused(rate):
    with pytest.raises(ValueError, match=r"`rate` must be .* \[0, 1\).*rate="):
        Dropout(rate)

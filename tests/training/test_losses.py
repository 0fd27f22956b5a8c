"""SmoothedCrossEntropy: one mean over real tokens, whatever the padding."""

import keras
import numpy as np
import pytest
from backend_functions import gradients

from keras_tfm.training import SmoothedCrossEntropy

B, T, V = 3, 5, 7


def batch(seed=0, lengths=(2, 5, 3)):
    generator = np.random.default_rng(seed)
    labels = generator.integers(1, V, (B, T))
    labels *= np.arange(T) < np.array(lengths)[:, None]
    logits = (2 * generator.normal(size=(B, T, V))).astype("float32")
    return labels, logits


def by_loops(labels, logits, weights=None, smoothing=0.0):
    """Token-weighted mean of the smoothed loss, one token at a time."""
    total = count = 0.0
    for place in np.ndindex(*labels.shape):
        if labels[place] == 0:
            continue
        row = logits[place].astype("float64")
        log_p = row - np.log(np.exp(row).sum())
        loss = (
            -(1 - smoothing) * log_p[labels[place]] - smoothing * log_p.mean()
        )
        weight = 1.0 if weights is None else weights[place]
        total += weight * loss
        count += weight
    return total / count


def more_padding(labels, logits, more=10):
    noise = np.random.default_rng(1).normal(size=(B, more, V))
    return (
        np.pad(labels, ((0, 0), (0, more))),
        np.concatenate([logits, 50 * noise.astype("float32")], axis=1),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_the_mean_over_real_tokens(smoothing):
    labels, logits = batch()
    found = float(SmoothedCrossEntropy(smoothing)(labels, logits))
    assert found == pytest.approx(
        by_loops(labels, logits, smoothing=smoothing), rel=1e-5
    )


@pytest.mark.parametrize("flavour", ["uniform", "tensor2tensor"])
def test_padding_more_changes_neither_loss_nor_gradient(flavour):
    labels, logits = batch()
    more_labels, more_logits = more_padding(labels, logits)
    loss = SmoothedCrossEntropy(0.1, flavour)
    assert float(loss(more_labels, more_logits)) == pytest.approx(
        float(loss(labels, logits)), rel=1e-6
    )
    (plain,), _ = gradients(lambda x: loss(labels, x), [logits])
    (padded,), _ = gradients(lambda x: loss(more_labels, x), [more_logits])
    np.testing.assert_allclose(padded[:, :T], plain, atol=1e-8)
    assert (padded[:, T:] == 0.0).all()


def test_an_implicit_mask_on_the_logits_changes_nothing():
    labels, logits = batch()
    loss = SmoothedCrossEntropy(0.1)
    expected = float(loss(labels, logits))
    for mask in (labels != 0, np.ones((B, T), bool), np.zeros((B, T), bool)):
        masked = keras.ops.convert_to_tensor(logits)
        masked._keras_mask = keras.ops.convert_to_tensor(mask)
        assert float(loss(labels, masked)) == expected


def test_fit_reports_the_same_loss_with_and_without_implicit_masks():
    labels, _ = batch()
    reported = []
    for mask_zero in (True, False):
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [
                keras.Input((None,), dtype="int32"),
                keras.layers.Embedding(V, 4, mask_zero=mask_zero),
                keras.layers.Dense(V),
            ]
        )
        model.compile("sgd", SmoothedCrossEntropy(0.1))
        logits = model(labels)
        has_mask = getattr(logits, "_keras_mask", None) is not None
        assert has_mask is mask_zero
        reported.append(model.evaluate(labels, labels, verbose=0))
        expected = by_loops(
            labels, keras.ops.convert_to_numpy(logits), smoothing=0.1
        )
        assert reported[-1] == pytest.approx(expected, rel=1e-5)
    assert reported[0] == reported[1]


def test_a_batch_without_tokens_costs_nothing_and_moves_nothing():
    _, logits = batch()
    labels = np.zeros((B, T), int)
    for reduction in ("token_mean", "sum"):
        loss = SmoothedCrossEntropy(0.1, reduction=reduction)
        assert float(loss(labels, logits)) == 0.0
        (gradient,), _ = gradients(
            lambda x, loss=loss: loss(labels, x), [logits]
        )
        assert (gradient == 0.0).all()


def test_padding_of_nan_reaches_neither_loss_nor_gradient():
    labels, logits = batch()
    dirty = np.where((labels == 0)[..., None], np.nan, logits)
    loss = SmoothedCrossEntropy(0.1)
    assert float(loss(labels, dirty)) == float(loss(labels, logits))
    (gradient,), _ = gradients(lambda x: loss(labels, x), [dirty])
    assert np.isfinite(gradient).all()


def test_a_sample_weight_counts_in_the_sum_and_in_the_number():
    labels, logits = batch()
    loss = SmoothedCrossEntropy()
    weights = np.random.default_rng(3).random((B, T))
    assert float(loss(labels, logits, weights)) == pytest.approx(
        by_loops(labels, logits, weights), rel=1e-5
    )
    rows = np.array([0.5, 2.0, 0.0])
    expected = by_loops(labels, logits, np.repeat(rows[:, None], T, axis=1))
    for weights in (rows, rows[:, None]):
        found = float(loss(labels, logits, weights))
        assert found == pytest.approx(expected, rel=1e-5)


def test_weights_of_one_change_nothing_and_doubling_them_neither():
    labels, logits = batch()
    loss = SmoothedCrossEntropy(0.1)
    plain = float(loss(labels, logits))
    for weight in (1.0, 2.0):
        weights = np.full((B, T), weight)
        assert float(loss(labels, logits, weights)) == pytest.approx(plain)


def test_ignored_labels_of_any_value_may_have_weight_zero():
    labels, logits = batch(lengths=(5, 5, 5))
    weights = np.arange(T) < np.array([[2], [5], [3]])
    expected = float(
        SmoothedCrossEntropy()(np.where(weights, labels, 0), logits)
    )
    ignored = np.where(weights, labels, -100)
    found = float(SmoothedCrossEntropy()(ignored, logits, weights))
    assert found == pytest.approx(expected)
    found = float(SmoothedCrossEntropy(pad_id=-100)(ignored, logits))
    assert found == pytest.approx(expected)


def test_the_sum_with_normalised_weights_is_the_mean_of_the_whole_batch():
    # One replica with one real token, another with eight.
    labels, logits = batch(lengths=(1, 5, 3))
    weights = (labels != 0) / (labels != 0).sum()
    part = SmoothedCrossEntropy(0.1, reduction="sum")
    parts = [
        float(part(labels[rows], logits[rows], weights[rows]))
        for rows in (slice(0, 1), slice(1, 3))
    ]
    whole = float(SmoothedCrossEntropy(0.1)(labels, logits))
    assert sum(parts) == pytest.approx(whole, rel=1e-6)


def test_the_sum_without_weights_is_the_sum_over_real_tokens():
    labels, logits = batch()
    found = float(SmoothedCrossEntropy(reduction="sum")(labels, logits))
    assert found == pytest.approx(10 * by_loops(labels, logits), rel=1e-5)


def test_call_gives_the_loss_of_each_token():
    labels, logits = batch()
    loss = SmoothedCrossEntropy(0.1)
    each = keras.ops.convert_to_numpy(loss.call(labels, logits))
    assert each.shape == (B, T)
    assert (each[labels == 0] == 0.0).all()
    assert each.sum() / 10 == pytest.approx(float(loss(labels, logits)))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_loss_is_float32_under_every_policy(policy, dtype):
    labels, logits = batch()
    keras.config.set_dtype_policy(policy)
    half = keras.ops.cast(logits, dtype)
    found = SmoothedCrossEntropy(0.1)(labels, half)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    rounded = keras.ops.convert_to_numpy(keras.ops.cast(half, "float32"))
    assert float(found) == pytest.approx(
        by_loops(labels, rounded, smoothing=0.1), rel=1e-5
    )


def test_value_and_gradient_under_xla_are_those_without():
    labels, logits = batch()
    loss = SmoothedCrossEntropy(0.1)
    (plain,), _ = gradients(lambda x: loss(labels, x), [logits])
    (jitted,), _ = gradients(lambda x: loss(labels, x), [logits], jit=True)
    np.testing.assert_allclose(jitted, plain, atol=1e-7)
    assert (plain[labels == 0] == 0.0).all()
    assert (plain[labels != 0] != 0.0).any(axis=-1).all()


def test_a_loss_comes_back_from_its_config():
    loss = SmoothedCrossEntropy(0.1, "tensor2tensor", 3, "sum", name="mine")
    config = loss.get_config()
    for name, value in {
        "label_smoothing": 0.1,
        "flavour": "tensor2tensor",
        "pad_id": 3,
        "reduction": "sum",
        "name": "mine",
    }.items():
        assert config[name] == value
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is SmoothedCrossEntropy
    assert again.get_config() == config


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label_smoothing": 1.0}, r"`label_smoothing` .* in \[0, 1\)"),
        ({"flavour": "unifrom"}, "Did you mean 'uniform'"),
        ({"reduction": "mean"}, "`reduction` must be one of 'token_mean'"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        SmoothedCrossEntropy(**arguments)


# One replica holds a row of one token and the other a row of eight; after one
# step of plain gradient descent the weights must be those of one device.
REPLICAS = {
    "tensorflow": """
        import keras
        import numpy as np
        import tensorflow as tf

        import keras_tfm

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )

        def trained(strategy):
            with strategy.scope():
                model = keras.Sequential([
                    keras.Input((9,), dtype="int32"),
                    keras.layers.Embedding(7, 4, "glorot_uniform"),
                    keras.layers.Dense(7),
                ])
                for number, weight in enumerate(model.weights):
                    values = np.random.default_rng(number)
                    weight.assign(values.normal(size=weight.shape))
                model.compile(
                    keras.optimizers.SGD(1.0),
                    keras_tfm.training.SmoothedCrossEntropy(
                        0.1, reduction="sum"
                    ),
                    jit_compile=False,
                )
                model.optimizer.build(model.trainable_variables)
            labels = np.array([[3] + 8 * [0], [1, 2, 3, 4, 5, 6, 1, 2, 0]])
            weights = (labels != 0) / (labels != 0).sum()
            data = tf.data.Dataset.from_tensor_slices(
                (labels, labels, weights.astype("float32"))
            ).batch(2)
            model.fit(data, verbose=0)
            return [weight.numpy() for weight in model.weights]

        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        assert strategy.num_replicas_in_sync == 2
        two = trained(strategy)
        one = trained(tf.distribute.get_strategy())
        for a, b in zip(two, one, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
        print("equal")
    """,
    "jax": """
        import jax
        import keras
        import numpy as np

        import keras_tfm

        assert len(jax.devices()) == 2

        def trained():
            model = keras.Sequential([
                keras.Input((9,), dtype="int32"),
                keras.layers.Embedding(7, 4, "glorot_uniform"),
                keras.layers.Dense(7),
            ])
            for number, weight in enumerate(model.weights):
                values = np.random.default_rng(number)
                weight.assign(values.normal(size=weight.shape))
            model.compile(
                keras.optimizers.SGD(1.0),
                keras_tfm.training.SmoothedCrossEntropy(0.1),
            )
            labels = np.array([[3] + 8 * [0], [1, 2, 3, 4, 5, 6, 1, 2, 0]])
            model.fit(labels, labels, batch_size=2, verbose=0)
            return [np.asarray(weight) for weight in model.weights]

        one = trained()
        keras.distribution.set_distribution(keras.distribution.DataParallel())
        two = trained()
        for a, b in zip(two, one, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
        print("equal")
    """,
}


def test_two_replicas_take_the_step_of_one_device(fresh_process):
    found = fresh_process(
        REPLICAS[keras.backend.backend()],
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
    )
    assert found.endswith("equal\n")

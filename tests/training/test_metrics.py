"""Metrics over real tokens, by the rule of the loss."""

import keras
import numpy as np
import pytest

from keras_tfm.training import Perplexity
from keras_tfm.training import SmoothedCrossEntropy
from keras_tfm.training import TokenAccuracy
from keras_tfm.training.metrics import TokenMetric

B, T, V = 3, 5, 7
METRICS = pytest.mark.parametrize("metric", [TokenAccuracy, Perplexity])


def batch(seed=0, lengths=(2, 5, 3)):
    generator = np.random.default_rng(seed)
    labels = generator.integers(1, V, (B, T))
    labels *= np.arange(T) < np.array(lengths)[:, None]
    logits = (2 * generator.normal(size=(B, T, V))).astype("float32")
    for row in range(B):  # The first of each row is right.
        logits[row, 0, labels[row, 0]] = 9.0
    return labels, logits


def measured(metric, *batches):
    for one in batches:
        metric.update_state(*one)
    return float(metric.result())


def by_loops(labels, logits, weights=None):
    """Return the accuracy and the perplexity, one token at a time."""
    right = loss = count = 0.0
    for place in np.ndindex(*labels.shape):
        if labels[place] == 0:
            continue
        weight = 1.0 if weights is None else weights[place]
        row = logits[place].astype("float64")
        right += weight * (np.argmax(row) == labels[place])
        loss -= weight * (row[labels[place]] - np.log(np.exp(row).sum()))
        count += weight
    return right / count, np.exp(loss / count)


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_means_over_real_tokens(weighted):
    labels, logits = batch()
    weights = None
    if weighted:
        weights = np.random.default_rng(3).random((B, T))
    accuracy, perplexity = by_loops(labels, logits, weights)
    found = measured(TokenAccuracy(), (labels, logits, weights))
    assert found == pytest.approx(accuracy, rel=1e-5)
    assert 0.2 < found < 1.0
    found = measured(Perplexity(), (labels, logits, weights))
    assert found == pytest.approx(perplexity, rel=1e-5)


def test_padding_counts_neither_as_right_nor_as_wrong():
    right = [0.0, 0.0, 0.0, 9.0]
    for at_padding in ([9.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.0, 0.0]):
        logits = np.array([[right, at_padding, at_padding]])
        assert measured(TokenAccuracy(), ([[3, 0, 0]], logits)) == 1.0


@METRICS
def test_padding_more_changes_no_metric(metric):
    labels, logits = batch()
    padded = np.pad(labels, ((0, 0), (0, 10)))
    noise = 50 * np.random.default_rng(1).normal(size=(B, 10, V))
    more = np.concatenate([logits, noise], axis=1).astype("float32")
    assert measured(metric(), (padded, more)) == pytest.approx(
        measured(metric(), (labels, logits)), rel=1e-6
    )


@METRICS
def test_two_batches_count_by_their_tokens(metric):
    first, second = batch(0), batch(1, (1, 1, 1))
    together = [np.concatenate(x) for x in zip(first, second, strict=True)]
    assert measured(metric(), first, second) == pytest.approx(
        measured(metric(), together), rel=1e-6
    )
    apart = np.mean([measured(metric(), b) for b in (first, second)])
    assert abs(apart - measured(metric(), together)) > 0.01


@METRICS
def test_row_weights_are_token_weights(metric):
    labels, logits = batch()
    rows = np.array([0.5, 2.0, 0.0])
    tokens = np.repeat(rows[:, None], T, axis=1)
    assert measured(metric(), (labels, logits, rows)) == pytest.approx(
        measured(metric(), (labels, logits, tokens)), rel=1e-6
    )


def test_nothing_seen_is_an_accuracy_of_zero():
    metric = TokenAccuracy()
    assert float(metric.result()) == 0.0
    metric.update_state(np.zeros((B, T), int), batch()[1])
    assert float(metric.result()) == 0.0


@METRICS
def test_a_reset_forgets(metric):
    one = metric()
    measured(one, batch(0))
    one.reset_state()
    assert measured(one, batch(1)) == measured(metric(), batch(1))


@METRICS
def test_nan_at_padding_reaches_no_metric(metric):
    labels, logits = batch()
    dirty = np.where((labels == 0)[..., None], np.nan, logits)
    assert measured(metric(), (labels, dirty)) == measured(
        metric(), (labels, logits)
    )


def test_perplexity_is_the_exponential_of_the_loss():
    labels, logits = batch()
    loss = float(SmoothedCrossEntropy()(labels, logits))
    found = measured(Perplexity(), (labels, logits))
    assert found == pytest.approx(np.exp(loss), rel=1e-5)


def test_guessing_has_the_perplexity_of_the_vocabulary():
    labels, _ = batch()
    found = measured(Perplexity(), (labels, np.zeros((B, T, V))))
    assert found == pytest.approx(V, rel=1e-5)


@METRICS
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_metrics_count_in_float32_under_every_policy(metric, policy):
    keras.config.set_dtype_policy(policy)
    one = metric()
    assert {v.dtype for v in one.variables} == {"float32"}
    labels, logits = batch()
    half = keras.ops.cast(logits, policy.removeprefix("mixed_"))
    rounded = keras.ops.convert_to_numpy(keras.ops.cast(half, "float32"))
    assert measured(one, (labels, half)) == pytest.approx(
        by_loops(labels, rounded)[metric is Perplexity], rel=1e-4
    )


@METRICS
def test_a_metric_comes_back_from_its_config(metric):
    one = metric(pad_id=3, name="mine")
    again = keras.metrics.deserialize(keras.metrics.serialize(one))
    assert type(again) is metric
    assert (again.pad_id, again.name) == (3, "mine")
    assert again.get_config() == one.get_config()


def test_padding_may_have_another_id():
    logits = np.eye(4)[None, [3, 1]] * 9.0
    assert measured(TokenAccuracy(pad_id=2), ([[3, 2]], logits)) == 1.0
    assert measured(TokenAccuracy(pad_id=0), ([[3, 2]], logits)) == 0.5


@METRICS
def test_fit_reports_what_the_loops_say(metric):
    labels, _ = batch()
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(V, 4, mask_zero=True),
            keras.layers.Dense(V),
        ]
    )
    model.compile(loss=SmoothedCrossEntropy(), metrics=[metric(name="m")])
    logits = keras.ops.convert_to_numpy(model(labels))
    found = model.evaluate(labels, labels, verbose=0, return_dict=True)["m"]
    assert found == pytest.approx(
        by_loops(labels, logits)[metric is Perplexity], rel=1e-5
    )


def test_a_subclass_must_say_what_it_measures():
    with pytest.raises(NotImplementedError, match="must fill in `values`"):
        TokenMetric().update_state([[1]], [[[0.0, 1.0]]])

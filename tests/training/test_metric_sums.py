"""Sums over chosen batches, against NumPy and Keras's own results."""

import json

import keras
import numpy as np
import pytest

from keras_tfm.training.metric_sums import MetricSums
from keras_tfm.training.metrics import Perplexity
from keras_tfm.training.metrics import TokenAccuracy


class OneModel(keras.Model):
    """Only as much of a model as its metrics."""

    def __init__(self, *metrics):
        super().__init__()
        self.measures = list(metrics)

    @property
    def metrics(self):
        return self.measures


def take_in(mean, *pairs):
    for value, weight in pairs:
        mean.update_state(value, sample_weight=weight)


def test_only_what_came_between_start_and_stop_counts():
    mean = keras.metrics.Mean(name="loss")
    sums = MetricSums(OneModel(mean))
    take_in(mean, (100.0, 7))
    sums.start()
    take_in(mean, (2.0, 3), (5.0, 2))
    sums.stop()
    take_in(mean, (100.0, 7))
    assert sums.means() == {"loss": pytest.approx(16 / 5)}


def test_others_may_reset_and_use_the_metrics_in_between():
    mean = keras.metrics.Mean(name="loss")
    sums = MetricSums(OneModel(mean))
    take_in(mean, (100.0, 7))
    sums.start()
    take_in(mean, (2.0, 3))
    sums.stop()
    mean.reset_state()
    take_in(mean, (50.0, 1))
    sums.start()
    take_in(mean, (5.0, 2))
    sums.stop()
    assert sums.means() == {"loss": pytest.approx(16 / 5)}


def test_starting_or_stopping_twice_is_like_once():
    mean = keras.metrics.Mean(name="loss")
    sums = MetricSums(OneModel(mean))
    sums.stop()
    assert sums.means() == {}
    sums.start()
    take_in(mean, (2.0, 3))
    sums.start()
    take_in(mean, (5.0, 2))
    sums.stop()
    sums.stop()
    assert sums.means() == {"loss": pytest.approx(16 / 5)}


def test_every_metric_computes_its_own_result():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 5, (3, 7))
    logits = rng.normal(size=(3, 7, 5)).astype("float32")
    pairs = rng.random((2, 11)).astype("float32")
    metrics = TokenAccuracy(), Perplexity()
    error = keras.metrics.RootMeanSquaredError(name="error")
    sums = MetricSums(OneModel(*metrics, error))
    for metric in metrics:
        metric.update_state(labels[::-1], logits)  # before
    error.update_state(pairs[0], 9 * pairs[1])
    sums.start()
    for metric in metrics:
        metric.update_state(labels, logits)
    error.update_state(*pairs)
    sums.stop()
    fresh = TokenAccuracy(), Perplexity()
    for metric in fresh:
        metric.update_state(labels, logits)
    assert sums.means() == {
        "token_accuracy": pytest.approx(float(fresh[0].result()), rel=1e-5),
        "perplexity": pytest.approx(float(fresh[1].result()), rel=1e-5),
        "error": pytest.approx(
            np.sqrt(np.mean((pairs[0] - pairs[1]) ** 2)), rel=1e-5
        ),
    }


def test_the_metrics_of_compile_are_found_by_their_names():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Identity()])
    model.compile(loss="mse", metrics=["mae", keras.metrics.Precision()])
    sums = MetricSums(model)
    sums.start()  # Not built yet: Keras does it at the first batch.
    x = np.array([[0.9, 0.1], [0.2, 0.8], [0.9, 0.6]])
    y = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    logs = model.evaluate(x, y, batch_size=2, verbose=0, return_dict=True)
    sums.stop()
    assert sums.means() == pytest.approx(logs)
    assert set(logs) == {"loss", "mae", "precision"}


def test_the_state_survives_json():
    mean = keras.metrics.Mean(name="loss")
    one, two = MetricSums(OneModel(mean)), MetricSums(OneModel(mean))
    one.start()
    take_in(mean, (0.1, 3))
    one.stop()
    two.restore(json.loads(json.dumps(one.state())))
    two.start()
    take_in(mean, (0.7, 2))
    two.stop()
    assert two.means() == {"loss": pytest.approx(1.7 / 5)}
    two.clear()
    assert two.means() == two.state() == {}


def test_a_reset_within_a_batch_is_an_error():
    mean = keras.metrics.Mean(name="loss")
    sums = MetricSums(OneModel(mean))
    take_in(mean, (2.0, 7))
    sums.start()
    mean.reset_state()
    take_in(mean, (2.0, 3))
    with pytest.raises(RuntimeError, match=r"count went from 7\.0 to 3\.0"):
        sums.stop()

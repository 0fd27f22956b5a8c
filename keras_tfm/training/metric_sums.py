"""Means of a model's metrics over chosen batches, whoever resets them."""

import keras
import numpy as np


class MetricSums:
    """Add up what the metrics of a model take in between `start` and `stop`.

    Keras's metrics run on over an epoch, and `reset_metrics` belongs to all:
    whoever calls it spoils the means of the others. Here they are only read.
    Their variables are sums, such as `total` and `count`; what was added is
    kept in float64, and each metric makes its own result of it. So a loss, an
    accuracy and a perplexity keep the weights they have in Keras.

    Between `stop` and the next `start` the metrics may be reset and used by
    others; Keras resets them when an epoch begins. On the JAX backend the
    model's variables must be synchronized (`jax_state_sync`) at both.

    Args:
        model: Compiled Keras model.

    Raises:
        RuntimeError: By `stop`, if the metrics were reset since `start`.

    Example:
        >>> model = keras.Sequential([keras.layers.Identity()])
        >>> model.compile(loss="mae")
        >>> sums = MetricSums(model)
        >>> sums.start()
        >>> _ = model.evaluate(np.ones((3, 1)), np.zeros((3, 1)), verbose=0)
        >>> sums.stop()
        >>> sums.means()
        {'loss': 1.0}
    """

    def __init__(self, model):
        self._model = model
        self._sums = {}
        self._before = None
        self._variables = None

    def start(self):
        """Count from here on, unless that is so already."""
        if self._before is None:
            self._before = self._read()

    def stop(self):
        """Add what came since `start`; without one nothing is done."""
        if self._before is None:
            return
        # Keras builds metrics at the first batch: from now on there are all.
        self._variables = self._variables or self._named_variables()
        now, before = self._read(), self._before
        self._before = None
        for name, value in now.items():
            added = value - before.get(name, 0.0)
            if name.endswith("count") and np.any(added < 0):
                raise RuntimeError(
                    f"The metrics were reset within a batch: {name} went from "
                    f"{before[name]} to {value}. Reset them, or evaluate, only "
                    "after `MetricSums.stop`; on the JAX backend `TrainingLog` "
                    "stops only where it writes a row."
                )
            self._sums[name] = self._sums.get(name, 0.0) + added

    def means(self):
        """Return the results of the metrics, floats by name."""
        means = {}
        for metric in self._model.metrics:
            variables = metric.variables
            names = [_key(metric, index) for index in range(len(variables))]
            if not names or not {*names} <= {*self._sums}:
                continue  # Nothing was counted.
            result = metric.stateless_result(
                [
                    keras.ops.convert_to_tensor(self._sums[name], v.dtype)
                    for name, v in zip(names, variables, strict=True)
                ]
            )
            if not isinstance(result, dict):
                result = {metric.name: result}
            means.update(result)
        return {name: float(value) for name, value in means.items()}

    def clear(self):
        """Forget what was added."""
        self._sums = {}

    def state(self):
        """Return what was added, fit for JSON."""
        return {name: np.asarray(v).tolist() for name, v in self._sums.items()}

    def restore(self, state):
        """Take over what `state` returned."""
        self._sums = {name: np.asarray(v) for name, v in state.items()}

    def _read(self):
        # Twice a batch: it must be fast.
        variables = self._variables or self._named_variables()
        return {name: _value(variable) for name, variable in variables}

    def _named_variables(self):
        return [
            (_key(metric, index), variable)
            for metric in self._model.metrics
            for index, variable in enumerate(metric.variables)
        ]


def _key(metric, index):
    variable = metric.variables[index]
    return f"{metric.name}/{index}/{variable.name}"


def _value(variable):
    if len(variable.shape) == 0:
        return float(variable.value)
    return np.asarray(keras.ops.convert_to_numpy(variable.value), "float64")

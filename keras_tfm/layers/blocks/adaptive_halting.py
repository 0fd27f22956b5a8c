"""Adaptive computation time: each position decides how many steps it takes.

Shape letters: B batch, T length, E hidden_dim.
"""

import keras
from keras import ops

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_share
from keras_tfm.ops.halting import THRESHOLD
from keras_tfm.ops.halting import halting_step

ACCUMULATIONS = ("graves", "tensor2tensor")


@keras.saving.register_keras_serializable(package="keras_tfm")
class AdaptiveHalting(keras.layers.Layer):
    """Decide for each position how likely it is to halt at this step.

    A shared block asks it before each step, see `UniversalEncoder`. A position
    that has halted is worked on still, for the others to attend to, but its own
    output is decided; so the program has one shape whatever is decided.

    Masking: passes the mask on.

    Args:
        threshold: Float in (0, 1). A position halts when the sum of its
            probabilities passes it. Defaults to `0.99`.
        ponder_cost: Float of at least 0. Weight in the loss of the mean
            ponder time, see `HaltingRun.ponder_times`. Defaults to `0.01`.
        accumulation: How the output is made of the states of all steps.
            `"graves"` sums them by their weights, which sum to 1;
            `"tensor2tensor"` goes from the output so far towards the new state
            by the new weight, which gives the last steps more.
            Defaults to `"graves"`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(batch, length, hidden_dim)`.

    Output shape:
        `(batch, length)`, probabilities.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> layer = AdaptiveHalting()
        >>> layer(keras.ops.zeros((1, 1, 4))).numpy().round(3).tolist()
        [[0.7310000061988831]]

    Reference:
        [Graves, 2016](https://arxiv.org/abs/1603.08983), section 2;
        [Dehghani et al., 2019](https://arxiv.org/abs/1807.03819), section 2.2
        and appendix C. There the state of a position that has halted is copied
        from step to step; here, as in Tensor2Tensor's code, it is not.
    """

    def __init__(
        self,
        threshold=THRESHOLD,
        ponder_cost=0.01,
        accumulation="graves",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.threshold = check_share(
            "threshold", check_positive("threshold", threshold)
        )
        if ponder_cost:
            check_positive("ponder_cost", ponder_cost)
        self.ponder_cost = float(ponder_cost)
        self.accumulation = check_choice(
            "accumulation", accumulation, ACCUMULATIONS
        )
        self.supports_masking = True

    def build(self, inputs_shape):
        self.halting = keras.layers.Dense(
            1,
            # At first a position takes two steps.
            bias_initializer="ones",
            dtype=self.dtype_policy,
            name="halting",
        )
        self.halting.build(inputs_shape)
        self.built = True

    def call(self, inputs):
        return ops.cast(self.probabilities(inputs), self.compute_dtype)

    def probabilities(self, inputs):
        """Return the probabilities in float32, whatever the policy."""
        scores = ops.squeeze(self.halting(inputs), axis=-1)
        return ops.sigmoid(ops.cast(scores, "float32"))

    def begin(self, inputs):
        """Return a `HaltingRun` for such a tensor, before its first step."""
        return HaltingRun(self, inputs)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape[:-1]

    def get_config(self):
        return {
            **super().get_config(),
            "threshold": self.threshold,
            "ponder_cost": self.ponder_cost,
            "accumulation": self.accumulation,
        }


class HaltingRun:
    """One pass through the steps: what has been decided and given so far.

    Args:
        halting: An `AdaptiveHalting`.
        inputs: Float tensor `(B, T, E)`, the state before the first step.

    Attributes:
        output: Float32 tensor `(B, T, E)`.
        weights: List of float32 tensors `(B, T)`, one a step. At each position
            they sum to 1.
        ponder_times: Float32 tensor `(B, T)`: the number of steps that a
            position took, and the weight of its last one (Graves's N + R). The
            gradient goes through that weight.
    """

    def __init__(self, halting, inputs):
        self._halting = halting
        self.output = ops.zeros_like(ops.cast(inputs, "float32"))
        self._total = self.output[..., 0]
        self.ponder_times = self.output[..., 0]
        self.weights = []

    def decide(self, state, last):
        """Weigh the step that is about to be taken from a state.

        Args:
            state: Float tensor `(B, T, E)`.
            last: Boolean. Whether it is the last step.
        """
        weight, total, running = halting_step(
            self._halting.probabilities(state),
            self._total,
            last,
            self._halting.threshold,
        )
        halts = ops.logical_and(running, total >= 1)
        self._total = total
        self.ponder_times = (
            self.ponder_times
            + ops.cast(running, "float32")
            + ops.where(halts, weight, 0.0)
        )
        self.weights.append(weight)

    def collect(self, state):
        """Add the state after the step to the output, by its weight."""
        weight = ops.expand_dims(self.weights[-1], -1)
        state = ops.cast(state, "float32")
        if self._halting.accumulation == "tensor2tensor":
            state = state - self.output
        self.output = self.output + weight * state

    def cost(self, padding_mask=None):
        """Return the mean ponder time of the real tokens, weighted: a scalar.

        Args:
            padding_mask: Boolean tensor `(B, T)`, or `None`.
        """
        if padding_mask is None:
            mean = ops.mean(self.ponder_times)
        else:
            real = ops.cast(padding_mask, "float32")
            times = ops.sum(self.ponder_times * real)
            mean = times / ops.maximum(ops.sum(real), 1.0)
        return self._halting.ponder_cost * mean

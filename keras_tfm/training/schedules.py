"""Learning-rate schedules with warm-up, the field's usual three.

Each counts updates from 1, so that the first one has a rate above 0, and
computes in float32 whatever the dtype of the step.
"""

import keras
from keras import ops

from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int

Schedule = keras.optimizers.schedules.LearningRateSchedule


@keras.saving.register_keras_serializable(package="keras_tfm")
class InverseSquareRoot(Schedule):
    """Rise in a straight line to a peak, then fall with `1 / sqrt(step)`.

    Args:
        peak: Positive float. The rate at the end of the warm-up.
        warmup_steps: Positive integer, in updates. Defaults to `4000`.

    Example:
        >>> rate = InverseSquareRoot(peak=0.5, warmup_steps=4)
        >>> [round(float(rate(step)), 3) for step in (0, 3, 15)]
        [0.125, 0.5, 0.25]
    """

    def __init__(self, peak, warmup_steps=4000):
        super().__init__()
        self.peak = check_positive("peak", peak)
        self.warmup_steps = check_positive_int("warmup_steps", warmup_steps)

    def __call__(self, step):
        step, warmup = _count(step), float(self.warmup_steps)
        rising = step / warmup
        falling = ops.sqrt(warmup) * ops.rsqrt(step)
        return self.peak * ops.minimum(rising, falling)

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}


@keras.saving.register_keras_serializable(package="keras_tfm")
class PaperSchedule(Schedule):
    """The rate of the paper: `scale * d^-0.5 * min(s^-0.5, s * w^-1.5)`.

    With d = 512 and w = 4000 it peaks at 6.99e-4.

    Args:
        hidden_dim: Positive integer d, the width of the model.
        warmup_steps: Positive integer w, in updates. Defaults to `4000`.
        scale: Positive float. Defaults to `1.0`.

    Example:
        >>> rate = PaperSchedule(512)
        >>> f"{float(rate(3999)):.2e}"
        '6.99e-04'

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), equation 3.
    """

    def __init__(self, hidden_dim, warmup_steps=4000, scale=1.0):
        super().__init__()
        self.hidden_dim = check_positive_int("hidden_dim", hidden_dim)
        self.warmup_steps = check_positive_int("warmup_steps", warmup_steps)
        self.scale = check_positive("scale", scale)

    def __call__(self, step):
        step = _count(step)
        rising = step * self.warmup_steps**-1.5
        rate = ops.minimum(ops.rsqrt(step), rising)
        return self.scale * self.hidden_dim**-0.5 * rate

    def get_config(self):
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


@keras.saving.register_keras_serializable(package="keras_tfm")
class Tensor2TensorSchedule(Schedule):
    """`scale * d^-0.5 * min(1, s / w) * max(s, w)^-0.5`.

    The rate of Tensor2Tensor's `transformer_base`, its third version; with
    d = 512 it peaks at 9.88e-4.

    Args:
        hidden_dim: Positive integer d, the width of the model.
        warmup_steps: Positive integer w, in updates. Defaults to `8000`.
        scale: Positive float. Defaults to `2.0`.

    Example:
        >>> rate = Tensor2TensorSchedule(512)
        >>> f"{float(rate(7999)):.2e}"
        '9.88e-04'
    """

    def __init__(self, hidden_dim, warmup_steps=8000, scale=2.0):
        super().__init__()
        self.hidden_dim = check_positive_int("hidden_dim", hidden_dim)
        self.warmup_steps = check_positive_int("warmup_steps", warmup_steps)
        self.scale = check_positive("scale", scale)

    def __call__(self, step):
        step, warmup = _count(step), float(self.warmup_steps)
        rate = ops.minimum(1.0, step / warmup)
        rate = rate * ops.rsqrt(ops.maximum(step, warmup))
        return self.scale * self.hidden_dim**-0.5 * rate

    def get_config(self):
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


def _count(step):
    # Keras counts finished updates from 0, in int64.
    return ops.convert_to_tensor(step, "float32") + 1.0

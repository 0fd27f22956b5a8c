"""When a position has thought enough: adaptive computation time.

Shape letters: B batch, T length.
"""

from keras import ops

# Graves's 1 - epsilon: a position halts when so much of its weight is given.
THRESHOLD = 0.99


def halting_step(probability, total, last, threshold=THRESHOLD):
    """Weigh one more step of each position, and see which of them halt.

    A position gives each step its halting probability as weight, until their
    sum would pass the threshold, or the step is the last one. That step gets
    what is left to 1, so that the weights of a position sum to 1; later ones
    get 0.

    Args:
        probability: Float32 tensor `(B, T)` in [0, 1], the halting
            probabilities of this step.
        total: Float32 tensor `(B, T)`, the weights given before this step.
            It is 1 where a position has halted; begin with zeros.
        last: Boolean. Whether this is the last step.
        threshold: Float in (0, 1). Defaults to `0.99`.

    Returns:
        Three tensors `(B, T)`: the weight of this step, the new total, both
        float32, and whether the position was still running, boolean.

    Example:
        >>> total = ops.zeros((1, 1))
        >>> given = []
        >>> for step in range(3):
        ...     weight, total, _ = halting_step(
        ...         ops.full((1, 1), 0.75), total, last=step == 2
        ...     )
        ...     given.append(float(weight[0, 0]))
        >>> given
        [0.75, 0.25, 0.0]

    Reference:
        [Graves, 2016](https://arxiv.org/abs/1603.08983), section 2.2, with
        Tensor2Tensor's test against the threshold. Graves has no last step;
        Tensor2Tensor stops at one without giving it the rest.
    """
    running = total < 1
    halts = ops.logical_and(
        running, ops.logical_or(last, total + probability > threshold)
    )
    weight = ops.where(halts, 1 - total, probability)
    weight = ops.where(running, weight, 0.0)
    # Not the sum: rounded, it could lie under 1, and it would run for ever.
    total = ops.where(halts, 1.0, total + weight)
    return weight, total, running

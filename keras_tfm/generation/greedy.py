"""Greedy decoding: the likeliest token at every position."""

from keras import ops

from keras_tfm.generation.generator import Generator


class GreedyGenerator(Generator):
    """Choose the likeliest token each time; of equals, the lowest id.

    Args:
        max_length: Positive integer, the most tokens to write, the end
            included.
        start_id: Integer, the id the decoder reads first. Defaults to `1`.
        end_id: Integer, the id that ends a sequence. Defaults to `2`.
        pad_id: Integer, what follows the end. Defaults to `0`.

    Example:
        >>> def step(last, cache, index):
        ...     return ops.one_hot(last + 1, 4), cache  # 1, then 2, the end
        >>> generator = GreedyGenerator(max_length=3)
        >>> ids, scores = generator(step, (), active=[True, False])
        >>> ids.numpy().tolist()
        [[2, 0, 0], [0, 0, 0]]
    """

    def next_token(self, log_probabilities):
        return ops.argmax(log_probabilities, axis=-1)

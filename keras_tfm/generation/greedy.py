"""Greedy decoding: the likeliest token at every position."""

from keras import ops

from keras_tfm.generation.token_chooser import TokenChooser


class GreedyGenerator(TokenChooser):
    """Choose the likeliest token each time; of equals, the lowest id.

    Args:
        max_length: Positive integer, the most tokens to write, the end
            included.
        **kwargs: `start_id`, `end_id`, `pad_id`, `min_length` and
            `constraints`, see `Generator`.

    Example:
        >>> def step(last, cache, index):
        ...     return ops.one_hot(last + 1, 4), cache  # 1, then 2, the end
        >>> generator = GreedyGenerator(max_length=3)
        >>> ids, scores = generator(step, (), active=[True, False])
        >>> ids.numpy().tolist()
        [[2, 0, 0], [0, 0, 0]]
    """

    def next_token(self, next_tokens, index, seeds):
        _, tokens = next_tokens.likeliest(1)
        return ops.squeeze(tokens, -1)

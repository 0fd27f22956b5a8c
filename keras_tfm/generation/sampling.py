"""Sampling: draw tokens as the model's probabilities say.

Shape letters: B batch, V vocabulary.
"""

from keras import ops

from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.generation.token_chooser import TokenChooser
from keras_tfm.ops.row_noise import row_gumbel
from keras_tfm.ops.search import NEVER
from keras_tfm.ops.search import keep_top_k
from keras_tfm.ops.search import keep_top_p
from keras_tfm.ops.search import largest


class SamplingGenerator(TokenChooser):
    """Draw each token at random from the model's distribution.

    The temperature comes first, then `top_k`, then `top_p`. A row depends on
    the seed and on its own entry of `seeds` alone, so that it is the same in
    any batch. The score is the model's own log-probability, whatever the
    temperature.

    Args:
        max_length: Positive integer, the most tokens to write, the end
            included.
        temperature: Positive float that the logits are divided by. Below 1
            likely tokens become likelier. Defaults to `1.0`.
        top_k: Positive integer: draw from this many likeliest tokens, or
            `None` for all.
        top_p: Float in (0, 1]: draw from the fewest likeliest tokens whose
            probabilities sum to it, or `None` for all.
        seed: Integer. Defaults to `0`.
        **kwargs: `start_id`, `end_id`, `pad_id`, `min_length` and
            `constraints`, see `Generator`.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> def step(last, cache, index):
        ...     return ops.one_hot(last + 1, 4) * 50.0, cache
        >>> ids, _ = SamplingGenerator(3, seed=7)(step, (), active=[True])
        >>> ids.numpy().tolist()
        [[2, 0, 0]]

    Reference:
        [Holtzman et al., 2020](https://arxiv.org/abs/1904.09751), section 3.
    """

    def __init__(
        self,
        max_length,
        temperature=1.0,
        top_k=None,
        top_p=None,
        seed=0,
        **kwargs,
    ):
        super().__init__(max_length, **kwargs)
        self.temperature = check_positive("temperature", temperature)
        self.top_k = None
        if top_k is not None:
            self.top_k = check_positive_int("top_k", top_k)
        if top_p is not None and not 0 < top_p <= 1:
            raise ValueError(
                "`top_p` must be a number above 0 and at most 1. Received: "
                f"top_p={top_p!r}."
            )
        self.top_p = top_p
        self.seed = int(seed)

    @property
    def reads_seeds(self):
        return True

    def next_token(self, next_tokens, index, seeds):
        scores = ops.squeeze(next_tokens.scores(), 1) / self.temperature
        scores = ops.maximum(scores, NEVER)
        if self.top_k is not None:
            scores = keep_top_k(scores, self.top_k)
        if self.top_p is not None:
            scores = keep_top_p(scores, self.top_p)
        # The largest of the scores with Gumbel noise falls on each token as
        # often as its probability says.
        noise = row_gumbel(self.seed, seeds, index, next_tokens.size)
        _, token = largest(scores + noise, 1)
        return token

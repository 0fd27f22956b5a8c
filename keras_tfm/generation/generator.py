"""The decoding loop and its stop rule, for any model and any choice of token.

Shape letters: B batch, T target length, V vocabulary.
"""

from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.ops.attention import LOWEST_SCORE


class Generator:
    """Abstract: write sequences token by token with a step function.

    The loop has static shapes, so that it compiles with XLA once for each shape
    of the cache, and stops when every row has ended. A row's result does not
    depend on the others, and padding is never written before its end. A
    subclass fills in `next_token`; it never sees a model, only logits.

    Args:
        max_length: Positive integer, the most tokens to write, the end
            included.
        start_id: Integer, the id the decoder reads first. Defaults to `1`.
        end_id: Integer, the id that ends a sequence. Defaults to `2`.
        pad_id: Integer, what follows the end. Defaults to `0`.
    """

    def __init__(self, max_length, start_id=1, end_id=2, pad_id=0):
        self.max_length = check_positive_int("max_length", max_length)
        self.start_id = start_id
        self.end_id = end_id
        self.pad_id = pad_id

    def next_token(self, log_probabilities):
        """Choose a token for each row.

        Args:
            log_probabilities: Float32 tensor `(B, V)`.

        Returns:
            Integer tensor `(B,)`.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must fill in `next_token`."
        )

    def __call__(self, step, cache, active):
        """Write a sequence for each row.

        Args:
            step: Function of the last tokens `(B, 1)`, the cache and the
                position, an int32 scalar. Returns the logits `(B, 1, V)` of
                the next token and the new cache, of the same shapes.
            cache: Whatever the first `step` needs; nested tensors.
            active: Boolean tensor `(B,)`. Rows to write; the others stay
                empty, and cost nothing but their place.

        Returns:
            A pair: int32 ids `(B, T)` with T = `max_length`, each row its
            tokens, `end_id` if it ended, then `pad_id`; and the float32 sum of
            the log-probabilities of a row's tokens, the end included, `(B,)`.
        """
        active = ops.convert_to_tensor(active)
        # Shaped after `active`, so that the state's shapes never change.
        zeros = ops.cast(ops.zeros_like(active), "int32")
        ids = ops.repeat(
            ops.expand_dims(zeros + self.pad_id, 1), self.max_length, axis=1
        )
        state = (
            ops.convert_to_tensor(0, "int32"),
            ids,
            zeros + self.start_id,
            ops.logical_not(active),
            ops.cast(zeros, "float32"),
            cache,
        )

        def running(index, ids, last, ended, scores, cache):
            return ops.logical_and(
                index < self.max_length,
                ops.logical_not(ops.all(ended)),
            )

        def write(index, ids, last, ended, scores, cache):
            logits, cache = step(ops.expand_dims(last, 1), cache, index)
            logits = ops.cast(ops.squeeze(logits, 1), "float32")
            log_probabilities = ops.log_softmax(logits, axis=-1)
            token = self.next_token(self._without_pad(log_probabilities))
            token = ops.cast(token, "int32")
            gain = ops.take_along_axis(
                log_probabilities, ops.expand_dims(token, 1), axis=1
            )
            gain = ops.squeeze(gain, 1)
            token = ops.where(ended, self.pad_id, token)
            scores = scores + ops.where(ended, 0.0, gain)
            ids = ops.slice_update(ids, (0, index), ops.expand_dims(token, 1))
            ended = ops.logical_or(ended, ops.equal(token, self.end_id))
            return index + 1, ids, token, ended, scores, cache

        _, ids, _, _, scores, _ = ops.while_loop(running, write, state)
        return ids, scores

    def _without_pad(self, log_probabilities):
        # Padding is no token: no model learns when to write it, and what
        # follows it would be masked in a full pass.
        tokens = ops.arange(log_probabilities.shape[-1])
        return ops.where(
            ops.equal(tokens, self.pad_id), LOWEST_SCORE, log_probabilities
        )

"""Generators that choose one token after another.

Shape letters: B batch, T target length, V vocabulary.
"""

import abc

from keras import ops

from keras_tfm.generation.generator import Generator


class TokenChooser(Generator):
    """Abstract: one sequence for each row, one token after another.

    A subclass fills in `next_token`. The arguments are those of `Generator`.
    """

    @abc.abstractmethod
    def next_token(self, next_tokens, index, seeds):
        """Choose a token for each row.

        Args:
            next_tokens: `NextTokens`, of one beam.
            index: Integer scalar tensor, the position of the token.
            seeds: Int32 tensor `(B,)`, for random choices.

        Returns:
            Integer tensor `(B,)`.
        """

    def begin(self, rows):
        zeros = ops.expand_dims(ops.zeros_like(rows.limits), 1)
        ids = ops.repeat(
            ops.expand_dims(zeros + self.pad_id, 2), self.max_length, axis=2
        )
        return {
            "ids": ids,
            "last": zeros + self.start_id,
            "done": ops.logical_not(rows.active),
            "scores": ops.cast(zeros, "float32"),
        }

    def advance(self, state, next_tokens, index, rows, attention):
        token = self.next_token(next_tokens, index, rows.seeds)
        token = ops.reshape(ops.cast(token, "int32"), (-1, 1))
        gain = next_tokens.of(token)
        done = ops.expand_dims(state["done"], 1)
        token = ops.where(done, self.pad_id, token)
        ended = ops.logical_or(
            ops.equal(token, self.end_id),
            ops.expand_dims(index + 1 >= rows.limits, 1),
        )
        return {
            "ids": ops.slice_update(
                state["ids"], (0, 0, index), ops.expand_dims(token, 2)
            ),
            "last": token,
            "done": ops.squeeze(ops.logical_or(done, ended), 1),
            "scores": state["scores"] + ops.where(done, 0.0, gain),
        }

    def finish(self, state):
        ids = state["ids"]
        return ids, state["scores"], ops.zeros_like(ids)

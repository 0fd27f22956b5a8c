"""Beam search: the likeliest sequences, several kept at every position.

Shape letters: B batch, K beams, N hypotheses, T target length, S source
length, V vocabulary.
"""

import copy

from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.generation.generator import Generator
from keras_tfm.generation.length_penalty import GNMTLengthPenalty
from keras_tfm.ops.search import NEVER
from keras_tfm.ops.search import coverage_penalty
from keras_tfm.ops.search import is_possible
from keras_tfm.ops.search import select_beams


class BeamSearchGenerator(Generator):
    """Keep the likeliest beginnings, and find the best sequences.

    At every position the `2 * num_beams` likeliest continuations are looked
    at. Of the first `num_beams`, those that end or reach the greatest length
    are finished hypotheses; the likeliest that do not end are the next beams. A
    row stops when no beam can still beat the last of its `num_hypotheses` best
    finished ones, whatever the length penalty. With a beam as wide as the space
    of sequences the result is the best sequence of all; with one beam and no
    length penalty it is the greedy one.

    The score of a hypothesis is the sum of its log-probabilities, divided by
    the length penalty, plus the coverage penalty. A row that has fewer
    hypotheses than asked for fills up with empty ones, of score `NEVER`.

    Args:
        max_length: Positive integer, the most tokens to write, the end
            included.
        num_beams: Positive integer K. Defaults to `4`.
        num_hypotheses: Positive integer N, at most `num_beams`.
            Defaults to `num_beams`.
        length_penalty: `LengthPenalty`. Defaults to `GNMTLengthPenalty(0.6)`.
        coverage_penalty: Float of at least 0, the factor β of Wu et al.'s
            coverage penalty. Defaults to `0.0`: none.
        **kwargs: `start_id`, `end_id`, `pad_id`, `min_length` and
            `constraints`, see `Generator`.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> def step(last, cache, index, ancestors):
        ...     after_1, after_3 = [0, 0, 4, 6], [0, 5, 2, 3]
        ...     table = ops.log(ops.array([after_1, after_3], "float32"))
        ...     return ops.take(table, last // 2, axis=0), cache
        >>> search = BeamSearchGenerator(max_length=2, num_beams=2)
        >>> ids, scores = search.n_best(step, (), active=[True])
        >>> ids.numpy().tolist()  # 2 has 4 in 10, 3 and 1 have 3 in 10.
        [[[2, 0], [3, 1]]]

    Reference:
        [Wu et al., 2016](https://arxiv.org/abs/1609.08144), section 7, for the
        penalties; [Freitag and Al-Onaizan,
        2017](https://arxiv.org/abs/1702.01806), section 3, for the search. We
        keep finished hypotheses apart, as Tensor2Tensor does, and stop at a
        bound that holds for every length.
    """

    def __init__(
        self,
        max_length,
        num_beams=4,
        num_hypotheses=None,
        length_penalty=None,
        coverage_penalty=0.0,
        **kwargs,
    ):
        super().__init__(max_length, **kwargs)
        self.num_beams = check_positive_int("num_beams", num_beams)
        if num_hypotheses is None:
            num_hypotheses = num_beams
        self.num_hypotheses = check_positive_int(
            "num_hypotheses", num_hypotheses
        )
        if num_hypotheses > num_beams:
            raise ValueError(
                "`num_hypotheses` must be at most `num_beams`. Received: "
                f"num_hypotheses={num_hypotheses}, num_beams={num_beams}."
            )
        if length_penalty is None:
            length_penalty = GNMTLengthPenalty()
        self.length_penalty = length_penalty
        if coverage_penalty < 0:
            raise ValueError(
                "`coverage_penalty` must be at least 0. Received: "
                f"{coverage_penalty}."
            )
        self.coverage_penalty = coverage_penalty

    def for_best(self):
        best = copy.copy(self)
        best.num_hypotheses = 1
        return best

    @property
    def reads_attention(self):
        return self.coverage_penalty > 0

    def begin(self, rows):
        zeros = ops.expand_dims(ops.zeros_like(rows.limits), 1)
        beams = ops.repeat(zeros, self.num_beams, axis=1)
        table = ops.repeat(ops.expand_dims(beams, 2), self.max_length, axis=2)
        never = ops.cast(beams, "float32") + NEVER
        first = ops.arange(self.num_beams) == 0
        state = {
            "ids": table + self.pad_id,
            # What is read next lies in the cache at the beam's own place.
            "ancestors": table + self._own(),
            "last": beams + self.start_id,
            "done": ops.logical_not(rows.active),
            # All beams are alike now: only the first may have children.
            "scores": ops.where(first, 0.0, never),
            "finished_ids": table[:, : self.num_hypotheses] + self.pad_id,
            "finished_ancestors": table[:, : self.num_hypotheses],
            "finished_scores": never[:, : self.num_hypotheses],
        }
        # A row that is not written has one hypothesis, the empty one.
        empty = ops.logical_and(ops.expand_dims(state["done"], 1), first)
        state["finished_scores"] = ops.where(
            empty[:, : self.num_hypotheses], 0.0, state["finished_scores"]
        )
        if self.reads_attention:
            source = ops.zeros_like(ops.cast(rows.source_mask, "float32"))
            state["coverage"] = ops.repeat(
                ops.expand_dims(source, 1), self.num_beams, axis=1
            )
        return state

    def advance(self, state, next_tokens, index, rows, attention):
        times = ops.arange(self.max_length, dtype="int32")
        here = ops.equal(times, index)
        count = min(2 * self.num_beams, self.num_beams * next_tokens.size)
        score, parent, token = next_tokens.continuations(state["scores"], count)
        candidates = {
            "ids": ops.where(
                here,
                ops.expand_dims(token, -1),
                select_beams(state["ids"], parent),
            ),
            "ancestors": select_beams(state["ancestors"], parent),
        }
        if self.reads_attention:
            seen = ops.mean(ops.cast(attention, "float32"), axis=1)
            candidates["coverage"] = select_beams(
                state["coverage"] + seen, parent
            )
        last = ops.expand_dims(index + 1 >= rows.limits, 1)
        ends = ops.logical_or(ops.equal(token, self.end_id), last)
        finished = self._with_finished(
            state, candidates, score, ends, index, rows
        )
        alive_score = ops.where(ends, NEVER, score)
        # At most half of the candidates end, so that K others are among them.
        best, place = ops.top_k(alive_score, self.num_beams)
        place = ops.cast(place, "int32")
        finished["done"] = ops.logical_or(
            state["done"],
            self._is_settled(finished["finished_scores"], best, index, rows),
        )
        alive = {
            name: select_beams(value, place)
            for name, value in candidates.items()
        }
        alive["ancestors"] = ops.where(
            times > index, self._own(), alive["ancestors"]
        )
        return {
            **alive,
            **finished,
            "scores": best,
            "last": select_beams(token, place),
        }

    def finish(self, state):
        real = is_possible(state["finished_scores"])
        ids = ops.where(
            ops.expand_dims(real, -1), state["finished_ids"], self.pad_id
        )
        return ids, state["finished_scores"], state["finished_ancestors"]

    def _own(self):
        return ops.expand_dims(ops.arange(self.num_beams, dtype="int32"), 1)

    def _with_finished(self, state, candidates, score, ends, index, rows):
        """Keep the best of the finished hypotheses and those that end now."""
        length = ops.cast(index + 1, "int32")
        value = score / self.length_penalty(length)
        if self.reads_attention:
            value = value + self.coverage_penalty * coverage_penalty(
                candidates["coverage"], rows.source_mask
            )
        real = ops.logical_and(ends, is_possible(score))
        # The second half is there to go on only: one beam must be greedy.
        first_half = ops.arange(score.shape[1]) < self.num_beams
        real = ops.logical_and(real, first_half)
        # A row that is done stays as it is.
        real = ops.logical_and(
            real, ops.logical_not(ops.expand_dims(state["done"], 1))
        )
        value = ops.where(real, value, NEVER)
        best, place = ops.top_k(
            ops.concatenate([state["finished_scores"], value], axis=1),
            self.num_hypotheses,
        )
        place = ops.cast(place, "int32")

        def choose(old, new):
            return select_beams(ops.concatenate([old, new], axis=1), place)

        return {
            "finished_scores": best,
            "finished_ids": choose(state["finished_ids"], candidates["ids"]),
            "finished_ancestors": choose(
                state["finished_ancestors"], candidates["ancestors"]
            ),
        }

    def _is_settled(self, finished, alive, index, rows):
        """Tell the rows whose beams cannot reach their finished hypotheses."""
        # A sum of log-probabilities never grows, and the divisor is largest
        # at the nearest or the greatest length: no beam will score more.
        divisor = ops.maximum(
            self.length_penalty(index + 2), self.length_penalty(rows.limits)
        )
        reachable = alive[:, 0] / divisor
        worst = finished[:, -1]
        settled = ops.logical_and(is_possible(worst), worst >= reachable)
        dead = ops.logical_not(is_possible(alive[:, 0]))
        return ops.logical_or(settled, dead)

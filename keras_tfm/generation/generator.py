"""The decoding loop and its stop rule, for any model and any choice of token.

Shape letters: B batch, K beams, N hypotheses, T target length, S source
length, V vocabulary, H heads.
"""

import abc

from keras import ops
from keras import tree

from keras_tfm.checks import check_positive_int
from keras_tfm.generation.attention_record import empty_record
from keras_tfm.generation.attention_record import read_record
from keras_tfm.generation.attention_record import written_record
from keras_tfm.generation.fewer_rows import SHARE
from keras_tfm.generation.fewer_rows import with_fewer_rows
from keras_tfm.generation.next_tokens import NextTokens
from keras_tfm.generation.rows import Rows
from keras_tfm.ops.search import NEVER
from keras_tfm.ops.search import is_possible


class Generator(abc.ABC):
    """Abstract: write sequences token by token with a step function.

    The loop has static shapes, so that it compiles with XLA once for each shape
    of the cache, and stops when every row has ended. A row's result does not
    depend on the others, and padding is never written before its end.

    A subclass says what is done with the probabilities of the next token:
    `begin`, `advance` and `finish`. It never sees a model. `TokenChooser` does
    so for every generator that chooses one token after another.

    Args:
        max_length: Positive integer, the most tokens to write, the end
            included.
        start_id: Integer, the id the decoder reads first. Defaults to `1`.
        end_id: Integer, the id that ends a sequence. Defaults to `2`.
        pad_id: Integer, what follows the end. Defaults to `0`.
        min_length: Positive integer, the fewest tokens to write, the end
            included. Defaults to `1`.
        constraints: Sequence of `Constraint`s, such as `NoRepeatNgram(3)`. A
            sequence that may not go on ends. Defaults to none.

    Attributes:
        num_beams: K, the sequences that are alive at a time for each row.
    """

    num_beams = 1

    def __init__(
        self,
        max_length,
        start_id=1,
        end_id=2,
        pad_id=0,
        min_length=1,
        constraints=(),
    ):
        self.max_length = check_positive_int("max_length", max_length)
        self.start_id = start_id
        self.end_id = end_id
        self.pad_id = pad_id
        self.min_length = check_positive_int("min_length", min_length)
        if min_length > max_length:
            raise ValueError(
                "`min_length` must be at most `max_length`. Received: "
                f"min_length={min_length}, max_length={max_length}."
            )
        self.constraints = tuple(constraints)

    @abc.abstractmethod
    def begin(self, rows):
        """Return the state of a search before its first token.

        Args:
            rows: `Rows`, what the call is about.

        Returns:
            A dictionary of tensors whose shapes never change. The loop reads
            `ids (B, K, T)` (what is written), `last (B, K)` (the next tokens
            to read), `done (B,)` and, where beams are copied, `ancestors (B,
            K, T)`.
        """

    @abc.abstractmethod
    def advance(self, state, next_tokens, index, rows, attention):
        """Return the state with one more token.

        Args:
            state: What `begin` or the `advance` before returned.
            next_tokens: `NextTokens`.
            index: Integer scalar tensor, the position of the token.
            rows: `Rows`.
            attention: Float tensor `(B, H, K, S)`, the weights of the last
                block's cross-attention; `None` unless `reads_attention`.
        """

    @abc.abstractmethod
    def finish(self, state):
        """Return ids `(B, N, T)`, scores `(B, N)`, ancestors `(B, N, T)`."""

    def for_best(self):
        """Return a generator of the best hypothesis alone; it ends sooner."""
        return self

    @property
    def cache_lengths(self):
        """The lengths that a growing cache takes: up to four equal steps.

        Every one is a loop of its own in a compiled program.
        """
        steps = min(4, max(1, self.max_length // 8))
        return tuple(
            -(-self.max_length * step // steps) for step in range(1, steps + 1)
        )

    @property
    def reads_attention(self):
        """Whether `advance` needs the weights of the cross-attention."""
        return False

    @property
    def reads_seeds(self):
        """Whether the seeds of the rows make a difference."""
        return False

    def __call__(self, step, cache, active, **row_arguments):
        """Write a sequence for each row; of several hypotheses the best.

        Args:
            step: Function of the last tokens `(B, K)`, the cache and the
                position, an int32 scalar. Returns the logits `(B, K, V)` of
                the next token and the new cache, of the same shapes. A beam
                search calls it with `ancestors (B, K, T)` too, see
                `keras_tfm.ops.search.ancestor_mask`; with
                `return_attention_scores=True` it also returns a dictionary of
                the weights of each block: `decoder`, a tuple of `(B, H, K,
                T * K)`, and `cross`, a tuple of `(B, H, K, S)`.
            cache: Whatever the first `step` needs; nested tensors.
            active: Boolean tensor `(B,)`. Rows to write; the others stay
                empty, and cost nothing but their place.
            **row_arguments: See `n_best`.

        Returns:
            A pair: int32 ids `(B, T)` with T = `max_length`, each row its
            tokens, `end_id` if it ended, then `pad_id`; and the float32 score
            of each row, `(B,)`: the sum of the log-probabilities of its
            tokens, the end included, unless the generator says otherwise. With
            `return_attention_scores=True` also the weights.
        """
        found = self.for_best().n_best(step, cache, active, **row_arguments)
        return tree.map_structure(lambda tensor: tensor[:, 0], found)

    def n_best(
        self,
        step,
        cache,
        active,
        prefix=None,
        max_lengths=None,
        seeds=None,
        source_mask=None,
        grow_cache=None,
        take_rows=None,
        return_attention_scores=False,
    ):
        """Write the hypotheses of each row, the best first.

        Args:
            step: See `__call__`.
            cache: See `__call__`.
            active: See `__call__`.
            prefix: Integer tensor `(B, P)`, the tokens that each row begins
                with, padded with `pad_id` behind them. It goes before every
                constraint. Defaults to none.
            max_lengths: Integer tensor `(B,)`, the most tokens of each row, the
                end included. Defaults to `max_length` for all.
            seeds: Integer tensor `(B,)`, what the random choices of a row
                depend on, beside the generator's own seed. Defaults to the
                numbers of the rows.
            source_mask: Boolean tensor `(B, S)`, `True` for real tokens of the
                source. Needed for a coverage penalty.
            grow_cache: Function of a cache and an integer. Returns the cache
                with room for so many positions. The first cache then needs
                room for `cache_lengths[0]` alone, and the attention of early
                tokens is spared the places of late ones. Defaults to none: the
                cache has room for `max_length`.
            take_rows: Function of a cache and the numbers of some rows. Returns
                the cache of these rows. Once a quarter of the rows is left, the
                others give up their place, and again at a sixteenth. Defaults
                to none: every row keeps its place until all have ended.
            return_attention_scores: Boolean. Whether to return the attention
                weights too. Defaults to `False`.

        Returns:
            A pair: int32 ids `(B, N, T)`, and float32 scores `(B, N)`. With
            `return_attention_scores=True` a third: a dictionary of `decoder`
            and `cross`, tuples of float32 tensors `(B, N, H, T, T)` and `(B,
            N, H, T, S)` for each block: what the hypothesis looked at when it
            wrote each of its tokens, 0 behind its end.
        """
        rows = Rows.of_call(
            self, active, prefix, max_lengths, seeds, source_mask
        )
        read = self._reader(step, return_attention_scores)
        lengths = self.cache_lengths
        if grow_cache is None or return_attention_scores:
            lengths = (self.max_length,)
        if grow_cache is not None:
            cache = grow_cache(cache, lengths[0])
        index = ops.convert_to_tensor(0, "int32")
        state = self.begin(rows)
        record = ()
        if return_attention_scores:
            # Only its shapes are used: a compiler drops the rest.
            _, _, weights = read(state, cache, index)
            record = empty_record(weights, self.max_length)
            take_rows = None
        few = 0 if take_rows is None else ops.shape(active)[0] // SHARE
        for length in lengths:
            if length > lengths[0]:
                cache = grow_cache(cache, length)
            index, state, cache, record = ops.while_loop(
                _running_to(length, few),
                self._writer(read, rows),
                (index, state, cache, record),
            )
        if take_rows is not None:
            state = with_fewer_rows(
                lambda rows, few, *found: ops.while_loop(
                    _running_to(self.max_length, few),
                    self._writer(read, rows),
                    (*found, ()),
                )[:3],
                (index, state, cache),
                rows,
                take_rows,
            )
        ids, scores, ancestors = self.finish(state)
        if not return_attention_scores:
            return ids, scores
        real = ops.not_equal(ids, self.pad_id)
        return ids, scores, read_record(record, ancestors, real)

    def _writer(self, read, rows):
        def write(index, state, cache, record):
            logits, cache, weights = read(state, cache, index)
            if record:
                record = written_record(record, weights, index)
            state = self.advance(
                state,
                self._next_tokens(logits, state["ids"], index, rows),
                index,
                rows,
                weights["cross"][-1] if self.reads_attention else None,
            )
            return index + 1, state, cache, record

        return write

    def _reader(self, step, return_attention_scores):
        arguments = {}
        if return_attention_scores or self.reads_attention:
            arguments["return_attention_scores"] = True

        def read(state, cache, index):
            if "ancestors" in state:
                arguments["ancestors"] = state["ancestors"]
            logits, cache, *weights = step(
                state["last"], cache, index, **arguments
            )
            return logits, cache, *(weights or [None])

        return read

    def _next_tokens(self, logits, ids, index, rows):
        # Padding is no token: no model learns when to write it, and what
        # follows it would be masked in a full pass.
        forbidden = [(self.pad_id, True)]
        if self.min_length > 1:
            forbidden.append((self.end_id, index < self.min_length - 1))
        forced = rows.forced(index)
        if not self.constraints and forced is None:
            return NextTokens(logits, None, forbidden)
        logits = ops.cast(logits, "float32")
        allowed = logits
        size = logits.shape[-1]
        tokens = ops.arange(size, dtype="int32")
        for token, is_forbidden in forbidden:
            hidden = ops.logical_and(ops.equal(tokens, token), is_forbidden)
            allowed = ops.where(hidden, NEVER, allowed)
        if self.constraints:
            allowed = ops.reshape(allowed, (-1, size))
            flat_ids = ops.reshape(ids, (-1, self.max_length))
            for constraint in self.constraints:
                allowed = constraint(allowed, flat_ids, index)
            allowed = ops.reshape(allowed, (-1, self.num_beams, size))
            stuck = ops.logical_not(
                ops.any(is_possible(allowed), axis=-1, keepdims=True)
            )
            ends = ops.logical_and(stuck, ops.equal(tokens, self.end_id))
            allowed = ops.where(ends, logits, allowed)
        if forced is not None:
            forced = ops.expand_dims(forced, -1)
            wanted = ops.where(ops.equal(tokens, forced), logits, NEVER)
            allowed = ops.where(ops.equal(forced, self.pad_id), allowed, wanted)
        return NextTokens(logits, allowed)


def _running_to(length, few):
    def running(index, state, cache, record):
        left = ops.sum(ops.cast(ops.logical_not(state["done"]), "int32"))
        return ops.logical_and(index < length, left > few)

    return running

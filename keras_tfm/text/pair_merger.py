"""Byte-pair merges in core ops: many at once, with the result of one by one.

N symbols of a whole batch of texts. A symbol is the id of its piece, and a
lower id is merged earlier; `end_symbol` stands after each text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from collections.abc import Mapping

import tensorflow as tf

# A pair of symbols has a record of three ids, 20 bits each, and a flag.
_FIELD_BITS = 20
_NONE = 2**_FIELD_BITS - 1
_NO_RECORD = -1


class PairMerger(tf.Module):
    """Merge neighbouring symbols as long as together they are a piece.

    SentencePiece merges the pair with the lowest id first, the leftmost one
    of equals, until no two neighbours make a piece. One merge at a time would
    take as many turns as a text has merges. Here each turn does, in the whole
    batch, every merge that is certain to come:

    - No piece at all holds some pairs of neighbours. No merge will ever join
      such two, so that the symbols between two such places are a group of
      their own. In each group all pairs of its lowest id are next.
    - Elsewhere a pair `(x, y)` can lose `y` only to a piece that starts with
      `y` and the symbol after it, for symbols do nothing but grow; and `x`
      only to one that ends with the symbol before it and `x`. If no such
      piece has a lower id, nothing comes first.
    - Both hold only if the merged symbol brings no lower id into play than
      its own: if all pieces that start with it and its right neighbour, or
      end with its left neighbour and it, have higher ids. Where this is not
      known, a group goes on pair by pair.
    - In a run of equal pairs, as in "aaaa", each second one counts.

    Groups that are finished leave the loop, and memory grows with N alone.

    Args:
        pieces: Mapping of strings to ids: the pieces that merges can make,
            single characters included.
        end_symbol: Integer above all ids.

    Raises:
        ValueError: If there are more ids than a record can hold.

    Example:
        >>> merger = PairMerger({"a": 3, "b": 4, "ab": 1, "aba": 2}, 9)
        >>> merger(tf.constant([3, 4, 3, 3, 4, 9])).numpy().tolist()
        [2, 1, 9]
    """

    def __init__(self, pieces: Mapping[str, int], end_symbol: int) -> None:
        super().__init__(name="pair_merger")
        if end_symbol >= _NONE:
            raise ValueError(
                f"A vocabulary must have fewer than {_NONE} pieces. "
                f"Received: {end_symbol}."
            )
        self._end_symbol = end_symbol
        records = _pair_records(pieces) or {(end_symbol, end_symbol): -1}
        # An attribute, so that it is tracked and saved.
        self._records = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant([_key(*pair) for pair in records], tf.int64),
                tf.constant(list(records.values()), tf.int64),
            ),
            default_value=_NO_RECORD,
        )

    def __call__(self, symbols: tf.Tensor) -> tf.Tensor:
        """Merge all that can be merged.

        Args:
            symbols: Int32 tensor `(N,)`, with `end_symbol` after each text. A
                symbol that is no piece's id is left as it is.

        Returns:
            Int32 tensor with the symbols that remain.
        """
        places = tf.range(tf.size(symbols))
        # The last symbol is the end of a text: what follows does not matter.
        records = self._look_up(symbols, tf.roll(symbols, -1, 0))
        some = tf.TensorShape([None])
        *_, result = tf.while_loop(
            lambda symbols, *_: tf.size(symbols) > 0,
            self._turn,
            (symbols, places, records, symbols),
            shape_invariants=(some, some, some, some),
        )
        return tf.gather(result, _places(result >= 0))

    def _look_up(self, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        left, right = tf.cast(left, tf.int64), tf.cast(right, tf.int64)
        return self._records.lookup(_key(left, right))

    def _turn(
        self,
        symbols: tf.Tensor,
        places: tf.Tensor,
        records: tf.Tensor,
        result: tf.Tensor,
    ) -> tuple[tf.Tensor, ...]:
        is_last = tf.cast(records < 0, tf.int32)
        group = tf.cumsum(is_last, exclusive=True)
        number = tf.reduce_sum(is_last)
        lowest = tf.math.unsorted_segment_min(_whole(records), group, number)
        lowest = tf.gather(lowest, group)
        # What is finished leaves; its symbols are in the result.
        unfinished = _places(lowest < _NONE)
        symbols, places, records, group, lowest = (
            tf.gather(x, unfinished)
            for x in (symbols, places, records, group, lowest)
        )
        chosen = self._chosen(symbols, records, group, lowest)
        is_gone = tf.pad(chosen, [[1, 0]])[:-1]
        merged = tf.cast(_whole(records), tf.int32)
        symbols = tf.where(chosen, merged, symbols)
        written = _places(chosen | is_gone)
        result = tf.tensor_scatter_nd_update(
            result,
            tf.gather(places, written)[:, tf.newaxis],
            tf.gather(tf.where(is_gone, -1, symbols), written),
        )
        is_last = tf.where(chosen, _from_right(records), records) < 0
        kept = _places(~is_gone)
        symbols, places, is_last = (
            tf.gather(x, kept) for x in (symbols, places, is_last)
        )
        records = self._look_up(symbols, tf.roll(symbols, -1, 0))
        records = tf.where(is_last, tf.constant(_NO_RECORD, tf.int64), records)
        return symbols, places, records, result

    def _chosen(
        self,
        symbols: tf.Tensor,
        records: tf.Tensor,
        group: tf.Tensor,
        lowest: tf.Tensor,
    ) -> tf.Tensor:
        """Choose pairs whose merge is certain, no two of them overlapping."""
        whole = _whole(records)
        after = _from_right(_lowest_start(records))
        before = _from_left(_lowest_end(records))
        is_safe = (whole < _NONE) & (whole <= after) & (whole <= before)
        is_lowest = whole == lowest
        is_tame = self._is_tame(symbols, records, is_safe | is_lowest)
        # The lowest of a group follow one another up to one that is not tame.
        place = tf.range(tf.size(whole))
        stop = tf.math.unsorted_segment_min(
            tf.where(is_lowest & ~is_tame, place, tf.size(place)),
            group,
            tf.reduce_max(tf.pad(group, [[0, 1]])) + 1,
        )
        is_next = is_lowest & (place <= tf.gather(stop, group))
        is_certain = (is_safe & is_tame) | is_next
        is_first = is_certain & ((whole < before) | is_next)
        equal = (
            is_certain & _from_left(is_certain) & (whole == _from_left(whole))
        )
        return tf.cond(
            tf.reduce_any(equal | (is_certain & ~is_first)),
            lambda: _every_second(is_certain, is_first, equal),
            lambda: is_certain,
        )

    def _is_tame(
        self, symbols: tf.Tensor, records: tf.Tensor, mask: tf.Tensor
    ) -> tf.Tensor:
        """Say which merges bring no lower id into play; asked for `mask`."""
        flag = tf.bitwise.right_shift(records, 3 * _FIELD_BITS)
        doubtful = _places((flag > 0) & mask)
        end = self._end_symbol
        padded = tf.pad(symbols, [[1, 2]], constant_values=end)
        made = tf.gather(_whole(records), doubtful)
        left = self._look_up(tf.gather(padded, doubtful), made)
        right = self._look_up(made, tf.gather(padded, doubtful + 3))
        return tf.tensor_scatter_nd_update(
            tf.ones_like(mask),
            doubtful[:, tf.newaxis],
            (made < _lowest_end(left)) & (made < _lowest_start(right)),
        )


def _every_second(
    is_certain: tf.Tensor, is_first: tf.Tensor, equal: tf.Tensor
) -> tf.Tensor:
    """Choose each second pair of a run of equal ones, from its first."""
    starts = _places(is_certain & ~equal)
    place = tf.range(tf.size(equal))
    run = tf.searchsorted(starts, place, side="right") - 1
    start = tf.gather(starts, tf.maximum(run, 0))
    return is_certain & tf.gather(is_first, start) & ((place - start) % 2 == 0)


def _pair_records(pieces: Mapping[str, int]) -> dict[tuple[int, int], int]:
    """Collect what is known of each pair of pieces that some piece holds.

    A record has, from its low bits: the id of the two together, the lowest id
    of a piece that starts with them, and the lowest of one that ends with
    them; then 1 if the two together start or end a piece of a lower id.
    """
    wholes: dict[tuple[int, int], int] = {}
    starts: dict[tuple[int, int], int] = {}
    ends: dict[tuple[int, int], int] = {}
    inner: dict[tuple[int, int], int] = {}
    lowest: dict[str, int] = {}
    for piece, number in sorted(pieces.items(), key=lambda item: item[1]):
        size = len(piece)
        for begin, end in itertools.combinations(range(size + 1), 2):
            part = piece[begin:end]
            homes = []
            if begin == 0:
                homes.append(starts)
            if end == size:
                homes.append(ends)
            if homes:
                lowest.setdefault(part, number)
            for pair in _splits(part, pieces):
                for home in homes or [inner]:
                    home.setdefault(pair, number)
                if len(homes) == 2:
                    wholes[pair] = number
    wild = {i for piece, i in pieces.items() if lowest[piece] < i}
    return {
        pair: (
            wholes.get(pair, _NONE)
            | starts.get(pair, _NONE) << _FIELD_BITS
            | ends.get(pair, _NONE) << 2 * _FIELD_BITS
            | (wholes.get(pair) in wild) << 3 * _FIELD_BITS
        )
        for pair in starts.keys() | ends.keys() | inner.keys()
    }


def _splits(part: str, pieces: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    for cut in range(1, len(part)):
        left, right = pieces.get(part[:cut]), pieces.get(part[cut:])
        if left is not None and right is not None:
            yield left, right


def _key(left: int | tf.Tensor, right: int | tf.Tensor) -> int | tf.Tensor:
    return left * 2**_FIELD_BITS + right


def _whole(records: tf.Tensor) -> tf.Tensor:
    return records & _NONE


def _lowest_start(records: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(records, _FIELD_BITS) & _NONE


def _lowest_end(records: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(records, 2 * _FIELD_BITS) & _NONE


def _from_right(values: tf.Tensor) -> tf.Tensor:
    return tf.roll(values, -1, 0)


def _from_left(values: tf.Tensor) -> tf.Tensor:
    return tf.roll(values, 1, 0)


def _places(mask: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.reshape(tf.where(mask), [-1]), tf.int32)

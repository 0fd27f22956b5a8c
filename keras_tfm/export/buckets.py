"""Any number of rows of any length, computed at a few static shapes.

XLA compiles a program for each shape it meets. So rows are cut into chunks, and
a chunk is padded to the next of a short list of sizes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The sizes that batches of ids are padded to.

    Attributes:
        lengths: Increasing positive integers, in tokens.
        batch_sizes: Increasing positive integers, in rows.
        pad_id: Integer.
    """

    lengths: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    pad_id: int = 0

    def shapes(self) -> Iterator[tuple[int, int]]:
        """Yield every shape `(rows, tokens)` there can be."""
        for rows in self.batch_sizes:
            for length in self.lengths:
                yield rows, length

    def run(
        self,
        function: Callable[..., tuple[tf.Tensor, ...]],
        columns: Sequence[tf.RaggedTensor],
        shapes: Sequence[tf.TensorShape],
        dtypes: Sequence[tf.DType],
    ) -> tuple[tf.Tensor, ...]:
        """Call a function on chunks of rows and join what it returns.

        Args:
            function: Function of one int32 tensor `(rows, tokens)` for each
                column. Returns a tuple of tensors `(rows, …)`.
            columns: Ragged tensors `(count, None)` of one count. No row is
                longer than the last of `lengths`.
            shapes: The shape of each tensor that is returned, its first
                dimension `None`.
            dtypes: Their dtypes.

        Returns:
            The tensors of all rows, `(count, …)`.
        """
        most = self.batch_sizes[-1]
        count = tf.shape(columns[0].row_lengths())[0]
        # Rows of like length go together: less padding, and a loop over tokens
        # ends sooner.
        lengths = tf.stack([column.row_lengths() for column in columns])
        order = tf.argsort(tf.reduce_max(lengths, axis=0), stable=True)
        columns = [tf.gather(column, order) for column in columns]

        def run_chunk(start, *before):
            chunk = [column[start : start + most] for column in columns]
            after = function(*self._padded(chunk))
            rows = tf.minimum(count - start, most)
            joined = [
                tf.concat([old, new[:rows]], 0)
                for old, new in zip(before, after, strict=True)
            ]
            return (start + most, *joined)

        empty = [
            tf.zeros((0, *shape[1:]), dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
        _, *results = tf.while_loop(
            lambda start, *_: start < count,
            run_chunk,
            (tf.constant(0), *empty),
            shape_invariants=(tf.TensorShape(()), *shapes),
        )
        back = tf.math.invert_permutation(order)
        return tuple(tf.gather(result, back) for result in results)

    def _padded(self, columns: Sequence[tf.RaggedTensor]) -> list[tf.Tensor]:
        # One length for all columns keeps the number of programs small.
        longest = tf.reduce_max(
            tf.concat([[1], *(c.row_lengths() for c in columns)], 0)
        )
        length = next_size(tf.cast(longest, tf.int32), self.lengths)
        padded = []
        for column in columns:
            ids = tf.cast(column.to_tensor(self.pad_id), tf.int32)
            rows = tf.shape(ids)[0]
            more = [
                [0, next_size(rows, self.batch_sizes) - rows],
                [0, length - tf.shape(ids)[1]],
            ]
            padded.append(tf.pad(ids, more, constant_values=self.pad_id))
        return padded


def next_size(size: tf.Tensor, sizes: Sequence[int]) -> tf.Tensor:
    """Return the first of increasing sizes that is not smaller than `size`.

    The last one if all are smaller.
    """
    allowed = tf.constant(sizes)
    return tf.reduce_min(tf.where(allowed >= size, allowed, sizes[-1]))

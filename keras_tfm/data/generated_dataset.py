"""A `tf.data.Dataset` of what a Python iterator yields.

`tf.data.Dataset.from_generator` does the same, but its first use makes the
whole process give freed memory back to the system at once. A training then asks
for the same pages again in every step.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf


def generated_dataset(
    make_iterator: Callable[[], Iterator[Any]],
    signature: Any,
    size: int | None,
) -> tf.data.Dataset:
    """Make a dataset of the elements of an iterator.

    Args:
        make_iterator: Function that returns an iterator from the first element
            on. It is called each time the dataset is iterated, and must give
            the same elements then.
        signature: Nested structure of `tf.TensorSpec`, that of the elements.
        size: Integer, how many elements there are, or `None` for no end.

    Returns:
        A `tf.data.Dataset`.

    Example:
        >>> spec = tf.TensorSpec((None,), tf.int32)
        >>> rows = [np.array([5, 6], "int32"), np.array([7], "int32")]
        >>> dataset = generated_dataset(lambda: iter(rows), spec, 2)
        >>> [row.tolist() for row in dataset.as_numpy_iterator()]
        [[5, 6], [7]]
    """
    specs = tf.nest.flatten(signature)
    player = _Player(make_iterator)

    def element(index: tf.Tensor) -> Any:
        tensors = tf.numpy_function(
            player.element, [index], [spec.dtype for spec in specs]
        )
        for tensor, spec in zip(tensors, specs, strict=True):
            tensor.set_shape(spec.shape)
        return tf.nest.pack_sequence_as(signature, tensors)

    endless = size is None
    dataset = tf.data.Dataset.range(tf.int64.max if endless else size)
    return dataset.map(element).apply(
        tf.data.experimental.assert_cardinality(
            tf.data.INFINITE_CARDINALITY if endless else size
        )
    )


class _Player:
    """Give the elements of an iterator by their number."""

    def __init__(self, make_iterator: Callable[[], Iterator[Any]]) -> None:
        self._make_iterator = make_iterator
        self._iterator: Iterator[Any] = iter(())
        self._next = -1
        # Two iterations of one dataset may ask at the same time.
        self._lock = threading.Lock()

    def element(self, index: np.ndarray) -> list[np.ndarray]:
        with self._lock:
            number = int(index)
            if number != self._next:
                self._iterator = itertools.islice(
                    self._make_iterator(), number, None
                )
            self._next = number + 1
            return tf.nest.flatten(next(self._iterator))

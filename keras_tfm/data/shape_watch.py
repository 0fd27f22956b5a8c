"""Look at the shapes of the batches that a dataset gives."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

Shape = tuple[int, ...]
See = Callable[[dict[str, Shape], dict[str, str]], Any]

# What the parts of a batch are called that Keras trains on.
_PARTS = ("inputs", "labels", "weights")


def watch_shapes(dataset: tf.data.Dataset, see: See) -> tf.data.Dataset:
    """Tell a function of every new combination of shapes in a dataset.

    Where all shapes are known without looking, `see` is called at once and the
    dataset is returned as it is. Elsewhere a look at the shapes costs about
    half a millisecond a batch; what is in it is not read.

    Args:
        dataset: Dataset of batches as Keras takes them: inputs, `(inputs,
            labels)` or `(inputs, labels, weights)`.
        see: Function of two dictionaries, by the names of the inputs: shapes
            and dtypes. It is called once for each combination, in the thread
            that reads the dataset; such as `CompileBudget.see`.

    Returns:
        Dataset of the same batches.

    Example:
        >>> dataset = tf.data.Dataset.range(5).batch(2)
        >>> for batch in watch_shapes(dataset, lambda shapes, _: print(shapes)):
        ...     pass
        {'inputs': (2,)}
        {'inputs': (1,)}
    """
    specs = named_tensors(dataset.element_spec)
    dtypes = {name: spec.dtype.name for name, spec in specs.items()}
    if all(spec.shape.is_fully_defined() for spec in specs.values()):
        see({name: tuple(spec.shape) for name, spec in specs.items()}, dtypes)
        return dataset
    seen = set()

    def look(*shapes: np.ndarray) -> np.ndarray:
        found = tuple(tuple(shape.tolist()) for shape in shapes)
        if found not in seen:
            seen.add(found)
            see(dict(zip(specs, found, strict=True)), dtypes)
        return np.int32(len(seen))

    def pass_on(*batch: Any) -> Any:
        batch = batch if isinstance(dataset.element_spec, tuple) else batch[0]
        shapes = [tf.shape(tensor) for tensor in named_tensors(batch).values()]
        looked = tf.numpy_function(look, shapes, tf.int32)
        with tf.control_dependencies([looked]):
            return tf.nest.map_structure(tf.identity, batch)

    return dataset.map(pass_on)


def named_tensors(batch: Any) -> dict[str, Any]:
    """Return the dense tensors of a batch, or their specs, by name.

    The name is the key in a dictionary, or `inputs`, `labels` and `weights` by
    its place; a number is added to one that comes again.

    Args:
        batch: Dictionaries, tuples and lists of tensors.
    """
    named: dict[str, Any] = {}
    for name, tensor in _tensors(batch, None):
        unique, number = name, 1
        while unique in named:
            number += 1
            unique = f"{name}_{number}"
        named[unique] = tensor
    return named


def _tensors(structure: Any, name: str | None) -> Iterator[tuple[str, Any]]:
    if isinstance(structure, Mapping):
        for key in sorted(structure):
            yield from _tensors(structure[key], str(key))
    elif isinstance(structure, (tuple, list)):
        for place, part in enumerate(structure):
            top = name is None and place < len(_PARTS)
            yield from _tensors(part, _PARTS[place] if top else name)
    elif isinstance(structure, (tf.Tensor, tf.TensorSpec)):
        yield name or _PARTS[0], structure

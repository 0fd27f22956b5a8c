"""Which keys a query of local attention may attend to.

A window says, for the position of a query and of a key, whether they may meet,
and how far apart they can be at most. It is a plain value: two windows with the
same numbers are equal.
"""

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_whole_number

# Shorter blocks make many small products.
_SHORTEST_BLOCK = 16


class Window:
    """Abstract: who may attend to whom, in blocks.

    Attributes:
        block_length: Positive integer: queries that are handled together.
        blocks_before: Integer: blocks of keys before theirs that they may see.
        blocks_after: Integer: blocks after theirs.
        reach: Integer: the most positions that a key may lie before its query.
    """

    def visible(self, queries, keys):
        """Return where a query may attend to a key, ignoring causality.

        Args:
            queries: Integer tensor of positions.
            keys: Integer tensor of positions; both broadcast.
        """
        raise NotImplementedError

    def get_config(self):
        """Return what it is made of."""
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        """Make it anew."""
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_tfm")
@dataclasses.dataclass(frozen=True)
class OwnBlock(Window):
    """The keys of the query's own block.

    Args:
        length: Positive integer, positions of a block.

    Example:
        >>> window = OwnBlock(2)
        >>> window.visible(1, ops.array([0, 1, 2])).numpy().tolist()
        [True, True, False]

    Reference:
        [Liu et al., 2018](https://arxiv.org/abs/1801.10198), section 4.2.4.
    """

    length: int
    blocks_before: ClassVar[int] = 0
    blocks_after: ClassVar[int] = 0

    def __post_init__(self):
        check_positive_int("length", self.length)

    @property
    def block_length(self):
        return self.length

    @property
    def reach(self):
        return self.length - 1

    def visible(self, queries, keys):
        return ops.equal(queries // self.length, keys // self.length)


@keras.saving.register_keras_serializable(package="keras_tfm")
@dataclasses.dataclass(frozen=True)
class OwnAndPreviousBlock(Window):
    """The keys of the query's own block and of the block before.

    Args:
        length: Positive integer, positions of a block.

    Example:
        >>> window = OwnAndPreviousBlock(2)
        >>> window.visible(4, ops.array([1, 2, 5, 6])).numpy().tolist()
        [False, True, True, False]

    Reference:
        [Parmar et al., 2018](https://arxiv.org/abs/1802.05751), section 3.3:
        the memory blocks of local attention in one dimension.
    """

    length: int
    blocks_before: ClassVar[int] = 1
    blocks_after: ClassVar[int] = 0

    def __post_init__(self):
        check_positive_int("length", self.length)

    @property
    def block_length(self):
        return self.length

    @property
    def reach(self):
        return 2 * self.length - 1

    def visible(self, queries, keys):
        back = queries // self.length - keys // self.length
        return ops.logical_and(back >= 0, back <= 1)


@keras.saving.register_keras_serializable(package="keras_tfm")
@dataclasses.dataclass(frozen=True)
class Band(Window):
    """The keys at most so many positions before and after the query.

    Args:
        left: Non-negative integer, positions before the query.
        right: Non-negative integer, positions after it. Defaults to `0`.

    Example:
        >>> window = Band(left=1)
        >>> window.visible(2, ops.array([0, 1, 2, 3])).numpy().tolist()
        [False, True, True, False]
    """

    left: int
    right: int = 0

    def __post_init__(self):
        check_whole_number("left", self.left)
        check_whole_number("right", self.right)

    @property
    def block_length(self):
        return max(self.left, self.right, _SHORTEST_BLOCK)

    @property
    def blocks_before(self):
        return -(-self.left // self.block_length)

    @property
    def blocks_after(self):
        return -(-self.right // self.block_length)

    @property
    def reach(self):
        return self.left

    def visible(self, queries, keys):
        distances = keys - queries
        return ops.logical_and(distances >= -self.left, distances <= self.right)

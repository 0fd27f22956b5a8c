"""A cache that holds the latest positions and forgets the ones before.

Position p lies at place `p % L` of L, so that a new one takes the place of the
one that is out of reach. A search keeps K alternatives at each position (see
`keras_tfm.ops.cache_slots`); they lie side by side.

Shape letters: B batch, T new tokens, P new positions, K alternatives, L places,
C columns: the places and then the new positions, each of K alternatives.
"""

from keras import ops


class RingSlots:
    """What the columns of a step are, and which of them a new token may see.

    The columns of a step are those of the ring as it was before, and then the
    new ones. With ancestors the T new tokens are K alternatives at one
    position, without they are consecutive.

    Args:
        num_places: Integer L.
        new_length: Integer T, static.
        cache_index: Integer or scalar tensor: how many positions came before.
        ancestors: Integer tensor `(B, K, max_length)`, or `None`.

    Attributes:
        positions: Int32 tensor `(L + P,)`: the position of each column; below 0
            where nothing was written yet.
        query_positions: Int32 tensor `(T,)`.
    """

    def __init__(self, num_places, new_length, cache_index, ancestors=None):
        self.beams = 1 if ancestors is None else ancestors.shape[1]
        self.places = num_places
        self.new = new_length // self.beams
        self.index = ops.cast(cache_index, "int32")
        self._ancestors = ancestors
        places = ops.arange(num_places, dtype="int32")
        # The latest position before the new ones that belongs to a place.
        held = self.index - 1 - ops.mod(self.index - 1 - places, num_places)
        new = self.index + ops.arange(self.new, dtype="int32")
        self.positions = ops.concatenate([held, new])
        self.query_positions = ops.repeat(new, self.beams)
        self._latest = (
            self.index
            + self.new
            - 1
            - ops.mod(self.index + self.new - 1 - places, num_places)
        )

    def mask(self, visible):
        """Return who may attend to which column, causally.

        Args:
            visible: Function of positions of queries and keys, which broadcast,
                that returns where they may meet.

        Returns:
            Boolean tensor that broadcasts to `(B, 1, T, (L + P) * K)`.
        """
        queries = ops.expand_dims(self.query_positions, 1)
        keys = ops.expand_dims(self.positions, 0)
        mask = ops.logical_and(
            visible(queries, keys),
            ops.logical_and(keys >= 0, keys <= queries),
        )
        if self._ancestors is None:
            return ops.expand_dims(mask, (0, 1))
        last = self._ancestors.shape[2] - 1
        own = ops.take(
            self._ancestors, ops.clip(self.positions, 0, last), axis=2
        )
        own = ops.equal(
            ops.expand_dims(own, -1),
            ops.arange(self.beams, dtype=own.dtype),
        )
        mask = ops.logical_and(own, ops.expand_dims(mask, -1))
        columns = (self.places + self.new) * self.beams
        return ops.reshape(mask, (-1, 1, self.beams, columns))

    def column_positions(self):
        """Return the position of each of the `(L + P) * K` columns."""
        return ops.repeat(self.positions, self.beams)

    def joined(self, ring, new, axis):
        """Put the new entries behind those of the ring: C columns."""
        return ops.concatenate([ring, ops.cast(new, ring.dtype)], axis=axis)

    def written(self, ring, new, axis):
        """Return the ring with the new entries in their places."""
        shape = list(ops.shape(ring))
        by_place = [*shape]
        by_place[axis : axis + 1] = [self.places, self.beams]
        new_shape = [*by_place]
        new_shape[axis] = self.new
        ring = ops.reshape(ring, by_place)
        new = ops.reshape(ops.cast(new, ring.dtype), new_shape)
        # For each place the new entry that belongs to it, if there is one.
        number = self._latest - self.index
        chosen = ops.take(new, ops.maximum(number, 0), axis=axis)
        is_new = [1] * len(by_place)
        is_new[axis] = self.places
        is_new = ops.reshape(number >= 0, is_new)
        return ops.reshape(ops.where(is_new, chosen, ring), shape)

    def spread(self, weights, max_length):
        """Write the weights of the columns to those of all positions.

        Args:
            weights: Tensor `(B, H, T, C)`.
            max_length: Integer.

        Returns:
            Tensor `(B, H, T, max_length * K)`, as of a cache that forgets
            nothing; 0 for what the ring does not hold.
        """
        shape = ops.shape(weights)[:3]
        weights = ops.reshape(weights, (*shape, -1, self.beams))
        times = ops.arange(max_length, dtype="int32")
        columns = ops.where(
            times >= self.index,
            self.places + times - self.index,
            ops.mod(times, self.places),
        )
        columns = ops.minimum(columns, self.places + self.new - 1)
        there = ops.equal(ops.take(self.positions, columns), times)
        spread = ops.take(weights, columns, axis=3)
        spread = ops.where(ops.expand_dims(there, -1), spread, 0.0)
        return ops.reshape(spread, (*shape, max_length * self.beams))

"""Arrays of scores in tiles, so that the whole of them is never in memory.

Shape letters: B batch, H heads, T query length, S key length; I and J tiles
along the queries and the keys, M and N positions of a tile; R distances.
"""

from keras import ops


def cut(tensor, axis, size):
    """Cut an axis into tiles, and put the tiles first.

    Args:
        tensor: Tensor of any shape.
        axis: Non-negative integer.
        size: Positive integer, the positions of a tile.

    Returns:
        Tensor with one more axis, the tiles, in front; the last tile is filled
        up with zeros (`False`).

    Example:
        >>> cut(ops.ones((2, 3)), 1, 2).numpy().tolist()
        [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    """
    shape = list(ops.shape(tensor))
    tiles = number_of_tiles(shape[axis], size)
    padding = [[0, 0] for _ in shape]
    padding[axis][1] = tiles * size - shape[axis]
    tensor = ops.pad(tensor, padding)
    shape[axis : axis + 1] = [tiles, size]
    tensor = ops.reshape(tensor, shape)
    order = [axis, *(i for i in range(len(shape)) if i != axis)]
    return ops.transpose(tensor, order)


def join(tiles, axis, length):
    """Put the tiles of `cut` together again.

    Example:
        >>> tensor = ops.reshape(ops.arange(6), (2, 3))
        >>> join(cut(tensor, 1, 2), 1, 3).numpy().tolist()
        [[0, 1, 2], [3, 4, 5]]
    """
    order = list(range(1, len(tiles.shape)))
    order.insert(axis, 0)
    tensor = ops.transpose(tiles, order)
    shape = list(ops.shape(tensor))
    shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    tensor = ops.reshape(tensor, shape)
    parts = [slice(None)] * len(shape)
    parts[axis] = slice(0, length)
    return tensor[tuple(parts)]


def number_of_tiles(length, size):
    """Return how many tiles hold `length` positions."""
    return (length + size - 1) // size


class Tiles:
    """A tensor that broadcasts to `(B, H, T, S)`, in tiles of scores.

    Args:
        tensor: Tensor of rank 4 whose axes are 1 or full.
        query_size: Positive integer M.
        key_size: Positive integer N.
    """

    def __init__(self, tensor, query_size, key_size):
        self._shape = ops.shape(tensor)
        # An axis of size 1 is every tile's; first the keys are cut.
        self._by_key = tensor.shape[3] != 1
        self._by_query = tensor.shape[2] != 1
        if self._by_key:
            tensor = cut(tensor, 3, key_size)
        if self._by_query:
            tensor = cut(tensor, 2 + self._by_key, query_size)
        self.values = tensor

    def at(self, query_tile, key_tile):
        """Return a tile, which broadcasts to `(B, H, M, N)`."""
        values = self.values
        if self._by_query:
            values = values[query_tile]
        return values[key_tile] if self._by_key else values

    def add(self, sums, query_tile, key_tile, addend):
        """Add a tile `(B, H, M, N)` to sums that look like `values`.

        Where the tensor was broadcast, the addend is summed up.
        """
        tile = self.at(query_tile, key_tile)
        for axis, size in enumerate(tile.shape):
            if size == 1:
                addend = ops.sum(addend, axis=axis, keepdims=True)
        places = []
        if self._by_query:
            places.append(query_tile)
        if self._by_key:
            places.append(key_tile)
        return add_at(sums, places, addend)

    def joined(self, values):
        """Give an array that looks like `values` the tensor's shape."""
        if self._by_query:
            values = join(values, 2 + self._by_key, self._shape[2])
        return join(values, 3, self._shape[3]) if self._by_key else values


class DistanceTiles:
    """Scores that depend on the distance alone, in tiles.

    The interface of `Tiles`, from `T + S - 1` numbers and not `T S`.

    Args:
        by_distance: Tensor `(H, R)` of R = T + S - 1 scores; the first is that
            of the last query and the first key.
        num_queries: Integer or scalar tensor T.
        query_size: Positive integer M.
        key_size: Positive integer N.
    """

    def __init__(self, by_distance, num_queries, query_size, key_size):
        self._sizes = query_size, key_size
        self._distances = ops.shape(by_distance)[1]
        # The last tiles reach beyond both ends.
        self._margin = query_size + key_size
        self._zero = num_queries - 1 + self._margin
        self.values = ops.pad(
            by_distance, ((0, 0), (self._margin, self._margin))
        )

    def at(self, query_tile, key_tile):
        """Return a tile `(1, H, M, N)`."""
        queries, keys = self._sizes
        rows = ops.expand_dims(ops.arange(queries - 1, -1, -1), 1)
        columns = ops.expand_dims(ops.arange(keys), 0)
        part = ops.slice(
            self.values,
            (0, self._start(query_tile, key_tile)),
            (self.values.shape[0], queries + keys - 1),
        )
        return ops.expand_dims(ops.take(part, rows + columns, axis=1), 0)

    def add(self, sums, query_tile, key_tile, addend):
        """Add a tile `(B, H, M, N)` to sums that look like `values`."""
        queries, keys = self._sizes
        by_head = ops.sum(addend, axis=0)
        heads = ops.shape(by_head)[0]
        # Row i is moved by i to the right, so that distances are columns.
        width = queries + keys
        rows = ops.pad(
            ops.flip(by_head, axis=1), ((0, 0), (0, 0), (0, queries))
        )
        rows = ops.reshape(rows, (heads, queries * width))
        rows = ops.reshape(
            rows[:, : queries * width - queries], (heads, queries, width - 1)
        )
        start = (0, self._start(query_tile, key_tile))
        part = ops.slice(sums, start, (heads, width - 1))
        part = part + ops.cast(ops.sum(rows, axis=1), part.dtype)
        return ops.slice_update(sums, start, part)

    def joined(self, values):
        """Give an array that looks like `values` the shape `(H, R)`."""
        return values[:, self._margin : self._margin + self._distances]

    def _start(self, query_tile, key_tile):
        # Where the last query of the tile meets its first key.
        queries, keys = self._sizes
        last = query_tile * queries + queries - 1
        return self._zero + key_tile * keys - last


def add_at(tensor, places, addend):
    """Add to the part of a tensor that the first indices choose."""
    if not places:
        return tensor + addend
    part = tensor
    for place in places:
        part = part[place]
    part = ops.expand_dims(part + addend, tuple(range(len(places))))
    rest = [0] * (len(tensor.shape) - len(places))
    return ops.slice_update(tensor, [*places, *rest], part)


def put_at(tiles, place, tile):
    """Put a tile in place of one of `tiles`."""
    start = [place, *[0] * len(tile.shape)]
    return ops.slice_update(tiles, start, ops.expand_dims(tile, 0))

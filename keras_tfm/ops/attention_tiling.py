"""How attention falls into tiles: masks, biases and dropout of each.

Shape letters: B batch, H heads, T query length, S key length; M and N positions
of a tile along the queries and the keys.
"""

from keras import ops

from keras_tfm.ops.dropout import kept_places
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.tiles import DistanceTiles
from keras_tfm.ops.tiles import Tiles
from keras_tfm.ops.tiles import cut
from keras_tfm.ops.tiles import number_of_tiles


class Tiling:
    """Which tiles there are, and who may attend to whom in each."""

    def __init__(self, query, key, masks, causal, sizes):
        self.batch, self.heads, self.queries = ops.shape(query)[:3]
        self.keys = ops.shape(key)[2]
        self.query_size, self.key_size = sizes
        self.query_tiles = number_of_tiles(self.queries, self.query_size)
        self.key_tiles = number_of_tiles(self.keys, self.key_size)
        self._causal = causal
        self._masks = [Tiles(mask, *sizes) for mask in masks]

    def cut_queries(self, tensor):
        return cut(tensor, 2, self.query_size)

    def cut_keys(self, tensor):
        return cut(tensor, 2, self.key_size)

    def bias(self, kind, tensor):
        """Cut a bias: the whole of it, or one by distances."""
        sizes = self.query_size, self.key_size
        if kind is DistanceTiles:
            return DistanceTiles(tensor, self.queries, *sizes)
        return Tiles(tensor, *sizes)

    def visible_key_tiles(self, query_tile):
        """Return how many key tiles the queries of a tile can see."""
        if not self._causal:
            return self.key_tiles
        last = (query_tile + 1) * self.query_size - 1
        last = last + self.keys - self.queries
        seen = last // self.key_size + 1
        return ops.minimum(ops.maximum(seen, 0), self.key_tiles)

    def query_places(self, query_tile):
        """Return the places of a tile's queries, `(M, 1)`."""
        places = ops.arange(self.query_size, dtype="int32")
        return ops.expand_dims(places + query_tile * self.query_size, 1)

    def key_places(self, key_tile):
        """Return the places of a tile's keys, `(1, N)`."""
        places = ops.arange(self.key_size, dtype="int32")
        return ops.expand_dims(places + key_tile * self.key_size, 0)

    def mask(self, query_tile, key_tile):
        """Return who may attend to whom, which broadcasts to `(B, H, M, N)`.

        `None` where everyone may attend to all.
        """
        keys = self.key_places(key_tile)
        masks = [tiles.at(query_tile, key_tile) for tiles in self._masks]
        if self._causal:
            offset = self.keys - self.queries
            masks.append(keys <= self.query_places(query_tile) + offset)
        if not isinstance(self.keys, int) or self.keys % self.key_size:
            # The last tile is filled up.
            masks.append(keys < self.keys)
        return combine_masks(*masks)


class TileDropout:
    """Draw for each tile what a dropout of the whole weights draws there."""

    def __init__(self, tiling, rate, seed):
        self._tiling = tiling
        self.rate = rate
        self._seed = seed

    def __call__(self, query_tile, key_tile, weights):
        tiling = self._tiling
        rows = ops.arange(tiling.batch * tiling.heads, dtype="int32")
        rows = ops.reshape(rows, (tiling.batch, tiling.heads, 1, 1))
        rows = rows * tiling.queries + tiling.query_places(query_tile)
        columns = tiling.key_places(key_tile)
        keep = kept_places(rows, columns, tiling.keys, self.rate, self._seed)
        return ops.where(keep, weights / (1.0 - self.rate), 0.0)

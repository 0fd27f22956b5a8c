"""Which tiles there are, who sees whom in each, and what is dropped."""

import numpy as np
import pytest
from keras import ops

from keras_tfm.ops.attention_tiling import TileDropout
from keras_tfm.ops.attention_tiling import Tiling
from keras_tfm.ops.dropout import dropout

B, H, T, S, D = 2, 3, 13, 19, 5
M, N = 4, 6
SEED = np.array([2017, 612], "uint32")


def tiling(masks=(), causal=False, queries=T, keys=S):
    return Tiling(
        ops.zeros((B, H, queries, D)),
        ops.zeros((B, H, keys, D)),
        masks,
        causal,
        (M, N),
    )


@pytest.mark.parametrize("lengths", [(T, S), (S, T), (T, T)])
@pytest.mark.parametrize("causal", [True, False])
def test_each_pair_is_seen_where_all_masks_let_it(causal, lengths):
    queries, keys = lengths
    given = np.random.default_rng(3).random((B, 1, queries, keys)) < 0.6
    tiles = tiling((ops.convert_to_tensor(given),), causal, queries, keys)
    whole = np.broadcast_to(given, (B, H, queries, keys)).copy()
    if causal:
        whole &= np.tri(queries, keys, keys - queries, dtype=bool)
    for i, j in np.ndindex(tiles.query_tiles, tiles.key_tiles):
        expected = whole[:, :, i * M : i * M + M, j * N : j * N + N]
        rows, columns = expected.shape[2:]
        mask = ops.convert_to_numpy(tiles.mask(i, j))
        mask = np.broadcast_to(mask, (B, H, M, N))
        found = mask[:, :, :rows, :columns]
        np.testing.assert_array_equal(found, expected)
        # What fills up the last tile is no key.
        assert not mask[..., columns:].any()
        if whole[:, :, i * M : i * M + M, j * N :].any():
            assert int(tiles.visible_key_tiles(i)) > j


def test_without_masks_everyone_sees_all_that_is_there():
    assert tiling(keys=18).mask(0, 0) is None
    assert int(tiling().visible_key_tiles(0)) == 4


def test_a_tile_drops_what_the_whole_drops():
    tiles = tiling()
    drop = TileDropout(tiles, 0.4, SEED)
    weights = np.random.default_rng(5).random((B, H, T, S)).astype("float32")
    whole = ops.convert_to_numpy(dropout(weights, 0.4, SEED))
    for i, j in np.ndindex(tiles.query_tiles, tiles.key_tiles):
        part = (..., slice(i * M, i * M + M), slice(j * N, j * N + N))
        tile = np.zeros((B, H, M, N), "float32")
        rows, columns = weights[part].shape[2:]
        tile[:, :, :rows, :columns] = weights[part]
        found = ops.convert_to_numpy(drop(i, j, tile))[:, :, :rows, :columns]
        np.testing.assert_allclose(found, whole[part], rtol=1e-6)

"""Tiles: cut and joined at any length, read and added to in place."""

import numpy as np
import pytest
from backend_functions import compiled
from keras import ops

from keras_tfm.ops.tiles import DistanceTiles
from keras_tfm.ops.tiles import Tiles
from keras_tfm.ops.tiles import add_at
from keras_tfm.ops.tiles import cut
from keras_tfm.ops.tiles import join
from keras_tfm.ops.tiles import number_of_tiles

# Distinct primes: batch, heads, queries, keys.
B, H, T, S = 2, 3, 11, 17
M, N = 5, 7


def array(tensor):
    return ops.convert_to_numpy(tensor)


def numbers(shape):
    return np.arange(1.0, 1 + np.prod(shape), dtype="float32").reshape(shape)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 2, 5, 11, 13])
def test_tiles_are_slices_filled_up_with_zeros(axis, size):
    tensor = numbers((5, 7, 11))
    tiles = array(cut(ops.convert_to_tensor(tensor), axis, size))
    length = tensor.shape[axis]
    assert len(tiles) == number_of_tiles(length, size) == -(-length // size)
    for number, tile in enumerate(tiles):
        expected = np.zeros_like(tile)
        part = np.take(
            tensor,
            range(number * size, min((number + 1) * size, length)),
            axis,
        )
        expected[tuple(slice(0, n) for n in part.shape)] = part
        np.testing.assert_array_equal(tile, expected)
    joined = join(ops.convert_to_tensor(tiles), axis, length)
    np.testing.assert_array_equal(array(joined), tensor)


def test_what_fills_up_a_mask_hides():
    tiles = array(cut(np.ones((1, 3), bool), 1, 2))
    assert tiles.dtype == bool
    assert tiles[1].tolist() == [[True, False]]


SHAPES = [(B, H, T, S), (1, H, T, 1), (B, 1, 1, S), (1, 1, 1, 1), (1, 1, T, S)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tile_is_that_part_of_the_broadcast_tensor(shape):
    tensor = numbers(shape)
    full = np.zeros((B, H, 15, 21), "float32")
    full[:, :, :T, :S] = np.broadcast_to(tensor, (B, H, T, S))
    tiles = Tiles(ops.convert_to_tensor(tensor), M, N)
    for i, j in np.ndindex(3, 3):
        expected = full[:, :, i * M : i * M + M, j * N : j * N + N]
        tile = np.broadcast_to(array(tiles.at(i, j)), expected.shape)
        real = expected != 0  # What fills up a tile may be anything.
        np.testing.assert_array_equal(tile[real], expected[real])
    joined = tiles.joined(tiles.values)
    np.testing.assert_array_equal(array(joined), tensor)


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_add_up_what_was_broadcast(shape):
    addends = np.zeros((B, H, 15, 21), "float32")
    addends[:, :, :T, :S] = np.random.default_rng(0).normal(size=(B, H, T, S))
    tiles = Tiles(ops.zeros(shape), M, N)

    def all_sums(addends):
        sums = tiles.values
        for i, j in np.ndindex(3, 3):
            part = addends[:, :, i * M : i * M + M, j * N : j * N + N]
            sums = tiles.add(sums, i, j, part)
        return tiles.joined(sums)

    expected = addends
    for axis, size in enumerate(shape):
        if size == 1:
            expected = expected.sum(axis=axis, keepdims=True)
    expected = expected[tuple(slice(0, n) for n in shape)]
    found = compiled(all_sums)(ops.convert_to_tensor(addends))
    np.testing.assert_allclose(array(found), expected, atol=1e-5)


def distances_in_tile(i, j):
    """Return key minus query of each pair of a tile, and which are real."""
    queries = i * M + np.arange(M)[:, None]
    keys = j * N + np.arange(N)[None]
    return keys - queries, (queries < T) & (keys < S)


def test_scores_of_distances_come_in_tiles():
    by_distance = numbers((H, T + S - 1))
    tiles = DistanceTiles(ops.convert_to_tensor(by_distance), T, M, N)
    for i, j in np.ndindex(3, 3):
        distances, real = distances_in_tile(i, j)
        tile = array(tiles.at(i, j))
        assert tile.shape == (1, H, M, N)
        expected = by_distance[:, distances[real] + T - 1]
        np.testing.assert_array_equal(tile[0][:, real], expected)
    np.testing.assert_array_equal(
        array(tiles.joined(tiles.values)), by_distance
    )


def test_sums_of_distances_add_up_their_pairs():
    addends = np.zeros((B, H, 15, 21), "float32")
    addends[:, :, :T, :S] = np.random.default_rng(0).normal(size=(B, H, T, S))
    tiles = DistanceTiles(ops.zeros((H, T + S - 1)), T, M, N)

    def all_sums(addends):
        sums = tiles.values
        for i, j in np.ndindex(3, 3):
            part = addends[:, :, i * M : i * M + M, j * N : j * N + N]
            sums = tiles.add(sums, i, j, part)
        return tiles.joined(sums)

    expected = np.zeros((H, T + S - 1))
    for t, s in np.ndindex(T, S):
        expected[:, s - t + T - 1] += addends[:, :, t, s].sum(axis=0)
    found = compiled(all_sums)(ops.convert_to_tensor(addends))
    np.testing.assert_allclose(array(found), expected, atol=1e-5)


@pytest.mark.parametrize("places", [[], [2], [1, 3]])
def test_only_the_chosen_part_grows(places):
    tensor = numbers((3, 5, 7))
    expected = tensor.copy()
    expected[tuple(places)] += 0.5
    shape = expected[tuple(places)].shape

    def add(tensor, addend, *places):
        return add_at(tensor, list(places), addend)

    places = [ops.convert_to_tensor(place) for place in places]
    addend = ops.full(shape, 0.5)
    for run in (add, compiled(add)):
        found = run(ops.convert_to_tensor(tensor), addend, *places)
        np.testing.assert_array_equal(array(found), expected)

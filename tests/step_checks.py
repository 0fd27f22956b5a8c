"""Decoding step by step against the causal call, for any self-attention."""

import numpy as np
from backend_functions import swift
from keras import ops


def check_steps(layer, inputs, chunks, max_length, padding=None):
    """Steps of these sizes give the output and the weights of the call.

    Args:
        layer: A built self-attention.
        inputs: Array `(B, T, E)`.
        chunks: List of the sizes of the steps; they sum up to T.
        max_length: Integer, the positions of the cache.
        padding: Boolean array `(B, T)`, or `None`.
    """
    batch, length, _ = inputs.shape
    expected, expected_weights = causal_call(layer, padding)(inputs)
    expected = ops.convert_to_numpy(expected)
    expected_weights = ops.convert_to_numpy(expected_weights)
    keys = expected_weights.shape[-1]
    real = np.ones((batch, length), bool) if padding is None else padding
    steps_padding = None
    if padding is not None:
        steps_padding = np.ones((batch, max_length), bool)
        steps_padding[:, :length] = padding
    take_step = swift(
        lambda inputs, cache, index: layer.step(
            inputs,
            cache,
            index,
            padding_mask=steps_padding,
            return_attention_scores=True,
        )
    )
    cache, index = layer.initial_cache(batch, max_length), 0
    for size in chunks:
        positions = slice(index, index + size)
        output, cache, weights = take_step(
            ops.convert_to_tensor(inputs[:, positions]),
            cache,
            ops.convert_to_tensor(index, "int32"),
        )
        seen = real[:, positions]
        np.testing.assert_allclose(
            ops.convert_to_numpy(output)[seen],
            expected[:, positions][seen],
            rtol=1e-5,
            atol=1e-5,
        )
        by_query = np.moveaxis(ops.convert_to_numpy(weights), 1, 2)[seen]
        wanted = np.moveaxis(expected_weights[:, :, positions], 1, 2)[seen]
        np.testing.assert_allclose(
            by_query[..., :keys], wanted, rtol=1e-5, atol=1e-5
        )
        assert (by_query[..., keys:] == 0.0).all()
        index += size


def check_beams(layer, width, beams=3, length=11, grow_at=None):
    """Each beam of a search gets what its own sequence gets from the call.

    Args:
        layer: A built self-attention.
        width: Integer E.
        beams: Integer K.
        length: Integer, the positions that are decoded.
        grow_at: Integer, the room of the cache at first; it grows to `length`
            when it is full. Defaults to `length`.
    """
    batch = 2
    rng = np.random.default_rng(7)
    tokens = rng.normal(size=(batch, length, beams, width)).astype("float32")
    ancestors = np.zeros((batch, beams, length), "int32")
    room = grow_at or length
    cache = layer.initial_cache(batch, room, beams)
    call = causal_call(layer)
    take_step = swift(
        lambda inputs, cache, index, ancestors: layer.step(
            inputs,
            cache,
            index,
            ancestors=ancestors,
            return_attention_scores=True,
        )
    )
    for index in range(length):
        if index:
            parents = rng.integers(0, beams, (batch, beams))
            for row in range(batch):
                ancestors[row] = ancestors[row][parents[row]]
        # As a search does: a beam is its own ancestor from now on.
        ancestors[:, :, index:] = np.arange(beams)[None, :, None]
        if index == room:
            cache = layer.grow_cache(cache, length, beams)
        output, cache, weights = take_step(
            ops.convert_to_tensor(tokens[:, index]),
            cache,
            ops.convert_to_tensor(index, "int32"),
            ops.convert_to_tensor(ancestors),
        )
        # All sequences of all rows at once, each the one of its beam. What
        # comes after this position is not seen.
        rows = np.arange(batch)[:, None, None]
        own = tokens[rows, np.arange(length), ancestors]
        expected, expected_weights = call(
            own.reshape(batch * beams, length, width)
        )
        np.testing.assert_allclose(
            ops.convert_to_numpy(output).reshape(batch * beams, width),
            ops.convert_to_numpy(expected)[:, index],
            rtol=1e-5,
            atol=1e-5,
        )
        last = ops.convert_to_numpy(expected_weights)[:, :, index]
        # Of the alternatives at a key's position one is its own.
        found = np.moveaxis(ops.convert_to_numpy(weights), 2, 1)
        found = found.reshape(*last.shape[:2], -1, beams).sum(axis=-1)
        keys = min(last.shape[-1], found.shape[-1])
        np.testing.assert_allclose(
            found[..., :keys], last[..., :keys], rtol=1e-5, atol=1e-5
        )
        for rest in (found[..., keys:], last[..., keys:]):
            assert (rest == 0.0).all()


def causal_call(layer, padding=None):
    """Return a function of inputs: the causal call's output and weights."""
    return swift(
        lambda inputs: layer(
            inputs,
            padding_mask=padding,
            use_causal_mask=True,
            return_attention_scores=True,
        )
    )

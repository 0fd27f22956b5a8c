"""A shared decoder block: the plain one, and decoding step by step."""

import numpy as np
import pytest
from backend_functions import swift
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import AdaptiveHalting
from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import UniversalDecoder

B, T, S, H, D, F, STEPS, C = 2, 5, 7, 3, 4, 11, 3, 13
E = H * D
rng = np.random.default_rng(0)
X = rng.normal(size=(B, T, E)).astype("float32")
CONTEXT = rng.normal(size=(B, S, C)).astype("float32")
SOURCE_PADDING = np.array([[True] * 4 + [False] * 3, [True] * S])
# No halting, and both ways to accumulate.
KINDS = [None, "graves", "tensor2tensor"]


def make(accumulation=None, context=True, **options):
    halting = None
    if accumulation:
        halting = AdaptiveHalting(accumulation=accumulation)
    decoder = UniversalDecoder(STEPS, H, F, halting=halting, **options)
    decoder.build((B, T, E), *[(B, S, C)] * context)
    randomise(decoder)
    return decoder


def call(decoder, **flags):
    return decoder(X, CONTEXT, context_padding_mask=SOURCE_PADDING, **flags)


def test_it_is_the_plain_block_taken_again():
    decoder = make()
    block = DecoderBlock(H, F)
    block.build((B, T, E), (B, S, C))
    block.set_weights(decoder.block.get_weights())
    x, own, cross = X, [], []
    for step in range(STEPS):
        x = decoder.position(x)
        # The signal of the step alone: the same at all positions.
        x = x + decoder.step_signal(ops.zeros((1, 1, E)), start_index=step)
        x, weights, cross_weights = block(
            x,
            CONTEXT,
            context_padding_mask=SOURCE_PADDING,
            return_attention_scores=True,
        )
        own.append(weights)
        cross.append(cross_weights)
    found, *scores = call(decoder, return_attention_scores=True)
    np.testing.assert_allclose(found, decoder.norm(x), atol=1e-4)
    for kind, expected in zip(scores, (own, cross), strict=True):
        for ours, theirs in zip(kind, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("accumulation", KINDS)
@pytest.mark.parametrize("chunks", [[1] * T, [2, 3]])
def test_steps_give_what_the_pass_gives(accumulation, chunks):
    decoder = make(accumulation)
    expected, *scores = call(decoder, return_attention_scores=True)
    expected = ops.convert_to_numpy(expected)
    cache = decoder.initial_cache(B, T + 2, CONTEXT, SOURCE_PADDING)
    take_step = swift(
        lambda x, cache, index: decoder.step(
            x, cache, index, SOURCE_PADDING, return_attention_scores=True
        )
    )
    index = 0
    for size in chunks:
        at = slice(index, index + size)
        found, cache, *weights = take_step(
            ops.convert_to_tensor(X[:, at]),
            cache,
            ops.convert_to_tensor(index, "int32"),
        )
        np.testing.assert_allclose(found, expected[:, at], atol=1e-5)
        for ours, theirs in zip(weights, scores, strict=True):
            for own, whole in zip(ours, theirs, strict=True):
                whole = np.asarray(whole)[:, :, at]
                own = np.asarray(own)[..., : whole.shape[-1]]
                np.testing.assert_allclose(own, whole, atol=1e-5)
        index += size


def test_the_context_is_kept_once_for_all_steps():
    cache = make().initial_cache(B, T, CONTEXT, SOURCE_PADDING, num_beams=2)
    assert set(cache) == {"steps", "cross"}
    assert len(cache["steps"]) == STEPS
    grown = make().grow_cache(cache, T + 4, num_beams=2)
    assert grown["steps"][-1][0].shape[-1] == 2 * (T + 4)
    assert grown["cross"] is cache["cross"]


def test_without_a_context_there_is_no_cross_attention():
    decoder = make("graves", context=False)
    output, own, cross, times = decoder(
        X, return_attention_scores=True, return_ponder_times=True
    )
    assert output.shape == X.shape
    assert (len(own), cross) == (STEPS, ())
    assert times.shape == (B, T)
    assert "cross" not in decoder.initial_cache(B, T)


def test_a_position_depends_on_the_past_alone():
    decoder = make("graves")
    changed = X.copy()
    changed[:, 3:] += 1.0
    before, times = call(decoder, return_ponder_times=True)
    after, later = decoder(
        changed,
        CONTEXT,
        context_padding_mask=SOURCE_PADDING,
        return_ponder_times=True,
    )
    for old, new in ((before, after), (times, later)):
        old, new = np.asarray(old), np.asarray(new)
        np.testing.assert_allclose(old[:, :3], new[:, :3], atol=1e-6)
        assert np.abs(old - new)[:, 3:].max() > 1e-3

"""A stack of decoder blocks: scores, and decoding step by step."""

import numpy as np
import pytest
from keras import ops
from layer_checks import randomise
from numpy_reference import layer_norm

from keras_tfm.layers import Decoder

B, T, S, H, D, F, LAYERS, C = 2, 5, 7, 3, 11, 13, 2, 17
E = H * D
rng = np.random.default_rng(0)
X = rng.normal(size=(B, T, E)).astype("float32")
CONTEXT = rng.normal(size=(B, S, C)).astype("float32")
SOURCE_PADDING = np.array([[True] * 4 + [False] * 3, [True] * S])


def make(context=True, **options):
    decoder = Decoder(LAYERS, H, F, **options)
    decoder.build((B, T, E), *[(B, S, C)] * context)
    randomise(decoder)
    return decoder


def test_of_parts_that_give_zeros_only_the_final_norm_is_left():
    decoder = make()
    for block in decoder.blocks:
        parts = (
            block.self_attention,
            block.cross_attention,
            block.feed_forward,
        )
        for part in parts:
            weights = part.sublayer.get_weights()
            part.sublayer.set_weights([0.0 * weight for weight in weights])
    expected = layer_norm(X, *decoder.norm.get_weights())
    np.testing.assert_allclose(decoder(X, CONTEXT), expected, atol=1e-5)


def test_scores_come_from_each_block():
    decoder = make()
    _, weights, cross_weights = decoder(
        X, CONTEXT, return_attention_scores=True
    )
    assert len(weights) == len(cross_weights) == LAYERS
    x = X
    for block, own, cross in zip(
        decoder.blocks, weights, cross_weights, strict=True
    ):
        x, expected, expected_cross = block(
            x, CONTEXT, return_attention_scores=True
        )
        np.testing.assert_allclose(own, expected, atol=1e-6)
        np.testing.assert_allclose(cross, expected_cross, atol=1e-6)


def test_without_a_context_there_are_no_cross_scores():
    decoder = make(context=False)
    _, weights, cross_weights = decoder(X, return_attention_scores=True)
    assert len(weights) == LAYERS
    assert cross_weights == ()


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("chunks", [[1] * T, [3, 2]])
@pytest.mark.parametrize("has_context", [True, False])
def test_steps_give_what_the_call_gives(pre_norm, chunks, has_context):
    decoder = make(has_context, normalize_first=pre_norm)
    context = (CONTEXT,) if has_context else ()
    padding = SOURCE_PADDING if has_context else None
    expected, *all_weights = decoder(
        X,
        *context,
        context_padding_mask=padding,
        return_attention_scores=True,
    )
    expected = ops.convert_to_numpy(expected)
    # A longer cache than needed: what is free in it counts for nothing.
    given = (CONTEXT, padding) if has_context else ()
    cache, index = decoder.initial_cache(B, T + 4, *given), 0
    for size in chunks:
        positions = slice(index, index + size)
        output, cache, *weights = decoder.step(
            X[:, positions],
            cache,
            index,
            padding,
            return_attention_scores=True,
        )
        np.testing.assert_allclose(output, expected[:, positions], atol=1e-3)
        for ours, whole in zip(weights[0], all_weights[0], strict=True):
            np.testing.assert_allclose(
                ops.convert_to_numpy(ours)[..., :T],
                ops.convert_to_numpy(whole)[:, :, positions],
                atol=1e-4,
            )
        for ours, whole in zip(weights[1], all_weights[1], strict=True):
            np.testing.assert_allclose(
                ours, ops.convert_to_numpy(whole)[:, :, positions], atol=1e-4
            )
        index += size


def test_what_the_padded_source_holds_reaches_no_step():
    decoder = make()
    spoilt = np.where(SOURCE_PADDING[..., None], CONTEXT, np.nan)
    spoilt = spoilt.astype("float32")
    outputs = []
    for context in (CONTEXT, spoilt):
        cache = decoder.initial_cache(B, T, context, SOURCE_PADDING)
        output, _ = decoder.step(X[:, :1], cache, 0, SOURCE_PADDING)
        outputs.append(ops.convert_to_numpy(output))
    assert np.isfinite(outputs[1]).all()
    np.testing.assert_array_equal(*outputs)


def test_the_parameters_are_counted_by_the_formula():
    own = 4 * E * E + 4 * E
    cross = 2 * (E * E + E) + 2 * (C * E + E)
    block = own + cross + E * F + F + F * E + E + 3 * 2 * E
    assert make().count_params() == LAYERS * block + 2 * E

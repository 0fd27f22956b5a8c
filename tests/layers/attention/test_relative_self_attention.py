"""RelativeSelfAttention against the equations of the paper."""

import numpy as np
import pytest
from keras import ops
from layer_checks import randomise
from step_checks import check_beams
from step_checks import check_steps

from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import FeedForward
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import RelativeSelfAttention
from keras_tfm.layers import RotaryEmbedding

B, T, H, D, DV, E = 2, 11, 3, 5, 7, 13

rng = np.random.default_rng(1)
X = rng.normal(size=(B, T, E)).astype("float32")
each_reach = pytest.mark.parametrize("max_distance", [1, 3, 16])


def make(max_distance=3, **kwargs):
    kwargs = {"key_dim": D, "value_dim": DV, **kwargs}
    layer = RelativeSelfAttention(H, max_distance, **kwargs)
    layer.build((B, T, E))
    randomise(layer)
    return layer


def array(tensor):
    return ops.convert_to_numpy(tensor)


def by_the_paper(layer, causal):
    """Equations 1 to 5, for one head and one query at a time."""
    projected = X @ array(layer.query_key_value.kernel)
    projected = projected + array(layer.query_key_value.bias)
    query, key, value = np.split(projected, [H * D, 2 * H * D], axis=-1)
    keys, values = array(layer.key_distances), array(layer.value_distances)
    farthest = layer.max_distance
    output = np.zeros((B, T, H * DV))
    weights = np.zeros((B, H, T, T))
    for b, h, i in np.ndindex(B, H, T):
        own_key = key[b, :, h * D : (h + 1) * D]
        own_value = value[b, :, h * DV : (h + 1) * DV]
        seen = range(i + 1) if causal else range(T)
        rows = [np.clip(j - i, -farthest, farthest) + farthest for j in seen]
        scores = (own_key[seen] + keys[rows]) @ query[b, i, h * D : (h + 1) * D]
        powers = np.exp((scores - scores.max()) / np.sqrt(D))
        weights[b, h, i, seen] = powers / powers.sum()
        output[b, i, h * DV : (h + 1) * DV] = weights[b, h, i, seen] @ (
            own_value[seen] + values[rows]
        )
    output = output @ array(layer.attention_output.kernel)
    return output + array(layer.attention_output.bias), weights


@each_reach
@pytest.mark.parametrize("causal", [True, False])
def test_it_is_what_the_paper_says(max_distance, causal):
    layer = make(max_distance)
    output, weights = layer(
        X, use_causal_mask=causal, return_attention_scores=True
    )
    expected, expected_weights = by_the_paper(layer, causal)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)


def test_without_its_vectors_it_is_the_usual_attention():
    layer = make()
    for weight in (layer.key_distances, layer.value_distances):
        weight.assign(np.zeros(weight.shape))
    usual = MultiHeadSelfAttention(H, D, DV)
    usual.build((B, T, E))
    usual.set_weights(layer.get_weights()[2:])
    mask = rng.random((B, 1, T, T)) < 0.6
    bias = rng.normal(size=(1, H, T, T)).astype("float32")
    flags = {"attention_mask": mask, "position_bias": bias}
    np.testing.assert_allclose(
        layer(X, **flags), array(usual(X, **flags)), rtol=1e-5, atol=1e-5
    )


@each_reach
@pytest.mark.parametrize("chunks", [[1] * T, [4, 1, 6], [T]])
def test_steps_give_what_the_causal_call_gives(max_distance, chunks):
    padding = np.ones((B, T), bool)
    padding[0, 2:5] = False
    check_steps(make(max_distance), X, chunks, T + 2, padding)


@each_reach
def test_each_beam_gets_what_its_own_sequence_gets(max_distance):
    check_beams(make(max_distance, num_key_value_heads=1), E, length=7)
    check_beams(make(max_distance), E, length=7, grow_at=4)


def test_dropped_weights_take_their_distances_along():
    layer = make(dropout=0.5)
    layer.drop.seed_generator.state.assign([3, 0])
    first = array(layer(X, training=True))
    layer.drop.seed_generator.state.assign([3, 0])
    again, weights = layer(X, training=True, return_attention_scores=True)
    np.testing.assert_array_equal(first, array(again))
    np.testing.assert_allclose(array(weights).sum(-1), 1.0, atol=1e-5)
    assert np.abs(first - array(layer(X))).max() > 1e-2


def test_it_is_a_part_of_a_decoder_block():
    block = DecoderBlock(attention=make(), feed_forward=FeedForward(19))
    expected = array(block(X))
    restored = DecoderBlock.from_config(block.get_config())
    restored.build((B, T, E))
    restored.set_weights(block.get_weights())
    np.testing.assert_allclose(array(restored(X)), expected, atol=1e-6)


def test_a_position_beside_its_own_is_an_error():
    with pytest.raises(ValueError, match=r"positions of its own.*position=<"):
        RelativeSelfAttention(H, position=RotaryEmbedding())
    with pytest.raises(ValueError, match=r"`max_distance`.*max_distance=0"):
        RelativeSelfAttention(H, 0)

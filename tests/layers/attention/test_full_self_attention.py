"""Attention to all positions: step by step, by beams, in tiles."""

import numpy as np
import pytest
from keras import ops
from layer_checks import randomise
from step_checks import check_beams
from step_checks import check_steps

from keras_tfm.layers import AlibiBias
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import RelativePositionBias
from keras_tfm.layers import RotaryEmbedding
from keras_tfm.layers.attention.full_self_attention import FullSelfAttention

# D is even, for rotary positions; G heads of keys and values.
B, T, H, G, D, DV = 2, 11, 6, 2, 10, 7
E = 13

X = np.random.default_rng(1).normal(size=(B, T, E)).astype("float32")

POSITIONS = {
    "rotary": RotaryEmbedding,
    "alibi": lambda: AlibiBias(H),
    "buckets": lambda: RelativePositionBias(
        H, 8, 7, embeddings_initializer="random_normal"
    ),
}
each_position = pytest.mark.parametrize("position", POSITIONS)


def make(position=None, **kwargs):
    if position is not None:
        position = POSITIONS[position]()
    kwargs = {"key_dim": D, "value_dim": DV, **kwargs}
    layer = MultiHeadSelfAttention(H, position=position, **kwargs)
    layer.build((B, T, E))
    randomise(layer)
    return layer


def array(tensor):
    return ops.convert_to_numpy(tensor)


@each_position
@pytest.mark.parametrize("chunks", [[1] * T, [4, 1, 6], [T]])
def test_steps_give_what_the_call_gives(position, chunks):
    check_steps(make(position), X, chunks, T + 2)
    check_steps(make(position, num_key_value_heads=G), X, chunks, T)


@pytest.mark.parametrize("position", [None, *POSITIONS])
@pytest.mark.parametrize("grow_at", [None, 4])
def test_each_beam_gets_what_its_own_sequence_gets(position, grow_at):
    layer = make(position, num_key_value_heads=G)
    check_beams(layer, E, length=7, grow_at=grow_at)


@each_position
def test_the_weights_in_tiles_are_those_of_the_whole(position):
    whole, tiles = (
        make(position, blockwise_from=length) for length in (None, 0)
    )
    for causal in (True, False):
        np.testing.assert_allclose(
            tiles(X, use_causal_mask=causal),
            array(whole(X, use_causal_mask=causal)),
            atol=1e-5,
        )


def test_what_positions_mean_is_for_a_subclass_to_say():
    layer = FullSelfAttention(H)
    with pytest.raises(NotImplementedError):
        layer.attend_at(None, None, None, None)

"""LocalSelfAttention: the window's mask, its cache, its place in a block."""

import numpy as np
import pytest
from backend_functions import swift
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops
from layer_checks import randomise
from step_checks import check_beams
from step_checks import check_steps
from window_cases import WINDOWS
from window_cases import visible_in

from keras_tfm.layers import AlibiBias
from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import FeedForward
from keras_tfm.layers import LocalSelfAttention
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import RotaryEmbedding
from keras_tfm.ops import Band
from keras_tfm.ops import OwnAndPreviousBlock
from keras_tfm.ops import OwnBlock

B, T, H, D, DV, E = 2, 17, 3, 10, 7, 13

rng = np.random.default_rng(1)
X = rng.normal(size=(B, T, E)).astype("float32")
each_window = pytest.mark.parametrize("window", WINDOWS, ids=repr)
SOME = [OwnBlock(5), OwnAndPreviousBlock(3), Band(4, 2)]
some_windows = pytest.mark.parametrize("window", SOME, ids=repr)
# With those that hold one position alone.
step_windows = pytest.mark.parametrize(
    "window", [*SOME, OwnBlock(1), Band(0)], ids=repr
)


def make(window, **kwargs):
    kwargs = {"key_dim": D, "value_dim": DV, **kwargs}
    layer = LocalSelfAttention(H, window, **kwargs)
    layer.build((B, T, E))
    randomise(layer)
    return layer


def array(tensor):
    return ops.convert_to_numpy(tensor)


def window_mask(window, length=T):
    places = range(length)
    return np.array(
        [[visible_in(window, t, s) for s in places] for t in places]
    )


def dense_twin(layer):
    config = layer.get_config()
    config.pop("window")
    twin = MultiHeadSelfAttention.from_config(config)
    twin.build((B, T, E))
    twin.set_weights(layer.get_weights())
    return twin


@each_window
@pytest.mark.parametrize("causal", [True, False])
def test_it_is_the_dense_layer_under_the_mask_of_the_window(window, causal):
    layer = make(window)
    padding = np.arange(T) < np.array([T, 6])[:, None]
    twin, mask = dense_twin(layer), window_mask(window)

    def both(x):
        flags = {
            "padding_mask": padding,
            "use_causal_mask": causal,
            "return_attention_scores": True,
        }
        return layer(x, **flags), twin(x, attention_mask=mask, **flags)

    (output, weights), (expected, expected_weights) = swift(both)(X)
    np.testing.assert_allclose(output, array(expected), atol=1e-5)
    np.testing.assert_allclose(weights, array(expected_weights), atol=1e-6)


@some_windows
@pytest.mark.parametrize(
    "position", [RotaryEmbedding, lambda: AlibiBias(H)], ids=["rotary", "alibi"]
)
def test_positions_within_it_are_those_of_the_dense_layer(window, position):
    layer = make(window, position=position())
    expected = dense_twin(layer)(X, attention_mask=window_mask(window))
    np.testing.assert_allclose(layer(X), array(expected), atol=1e-5)
    check_steps(layer, X, [3, 1, 9, 4], T)


@step_windows
@pytest.mark.parametrize(
    ("chunks", "max_length"), [([1] * T, T + 6), ([9, 1, 7], T), ([T], T)]
)
def test_steps_give_what_the_causal_call_gives(window, chunks, max_length):
    padding = np.ones((B, T), bool)
    padding[0, 2:5] = False
    check_steps(make(window), X, chunks, max_length, padding)


@step_windows
def test_each_beam_gets_what_its_own_sequence_gets(window):
    layer = make(window, position=RotaryEmbedding())
    check_beams(layer, E, length=9)


@some_windows
@pytest.mark.parametrize("grow_at", [2, 6])
def test_a_cache_grows_while_a_search_goes_on(window, grow_at):
    check_beams(make(window), E, length=9, grow_at=grow_at)


@some_windows
def test_a_cache_holds_no_more_than_the_window_reaches(window):
    keys, values, _ = make(window).initial_cache(B, 10_000)
    assert keys.shape[3] == values.shape[2] == window.reach
    keys, values, _ = make(window).initial_cache(B, 2)
    assert keys.shape[3] == values.shape[2] == 2


@settings(max_examples=9, deadline=None)
@given(st.sampled_from(SOME), st.integers(0, T - 1))
def test_what_lies_beyond_the_window_changes_nothing(window, place):
    layer = make(window)
    changed = X.copy()
    changed[:, place] = 1e4
    before, after = array(layer(X)), array(layer(changed))
    blind = ~window_mask(window)[:, place]
    np.testing.assert_array_equal(after[:, blind], before[:, blind])


def test_scores_do_not_change_the_output_with_dropout_either():
    layer = make(OwnAndPreviousBlock(3), dropout=0.4)
    outputs = []
    for flags in ({}, {"return_attention_scores": True}):
        layer.drop.seed_generator.state.assign([3, 0])
        result = layer(X, training=True, **flags)
        outputs.append(array(result[0] if flags else result))
    np.testing.assert_array_equal(*outputs)
    assert np.abs(outputs[0] - array(layer(X))).max() > 1e-2


def test_it_is_a_part_of_a_decoder_block():
    block = DecoderBlock(
        attention=make(OwnBlock(4)), feed_forward=FeedForward(19)
    )
    expected = array(block(X))
    restored = DecoderBlock.from_config(block.get_config())
    restored.build((B, T, E))
    restored.set_weights(block.get_weights())
    np.testing.assert_allclose(array(restored(X)), expected, atol=1e-6)
    cache = block.initial_cache(B, T)
    for index in range(T):
        output, cache = block.step(X[:, index : index + 1], cache, index)
        np.testing.assert_allclose(output[:, 0], expected[:, index], atol=1e-4)


@pytest.mark.parametrize(
    ("window", "error", "message"),
    [
        (256, TypeError, r"`window` must be `OwnBlock\(length\)`.*window=256"),
        ("block", TypeError, "Received: window='block'"),
    ],
)
def test_something_else_for_a_window_is_an_error(window, error, message):
    with pytest.raises(error, match=message):
        LocalSelfAttention(H, window)

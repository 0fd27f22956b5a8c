"""Transformer.step: decoding gives the logits of a full pass."""

import itertools

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from models.transformer.made import KINDS
from models.transformer.made import T
from models.transformer.made import batch
from models.transformer.made import logits
from models.transformer.made import made


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


@pytest.mark.parametrize(("tie", "normalize_first"), KINDS)
def test_each_step_gives_the_logits_of_a_full_pass(tie, normalize_first):
    model = made(tie, normalize_first)
    source, target = batch(target_lengths=(5, 5, 5))
    expected = logits(model, source, target)
    cache = swift(lambda ids: model.initial_cache(ids, T + 3))(source)
    step = swift(model.step)
    for index in range(T):
        found, cache = step(
            target[:, index : index + 1],
            cache,
            keras.ops.convert_to_tensor(index, "int32"),
        )
        np.testing.assert_allclose(
            array(found)[:, 0], expected[:, index], atol=1e-5
        )


@pytest.mark.parametrize("cuts", [(0, 5), (0, 2, 5), (0, 1, 4, 5)])
def test_several_tokens_may_be_read_at_once(cuts):
    model = made()
    source, target = batch(target_lengths=(5, 5, 5))
    expected = logits(model, source, target)
    cache = swift(lambda ids: model.initial_cache(ids, T))(source)
    step = swift(model.step)
    for start, stop in itertools.pairwise(cuts):
        found, cache = step(target[:, start:stop], cache, start)
        np.testing.assert_allclose(
            array(found), expected[:, start:stop], atol=1e-5
        )


@pytest.mark.parametrize("max_length", [5, 16])
def test_the_size_of_the_cache_changes_nothing(max_length):
    model = made()
    source, target = batch(target_lengths=(5, 5, 5))
    cache = swift(lambda ids: model.initial_cache(ids, max_length))(source)
    found, _ = swift(model.step)(target, cache, 0)
    np.testing.assert_allclose(
        array(found), logits(model, source, target), atol=1e-5
    )


def test_more_source_padding_changes_no_step():
    model = made("all", False)
    source, target = batch(target_lengths=(5, 5, 5))
    results = []
    for more in (0, 4):
        ids = np.pad(source, ((0, 0), (0, more)))
        cache = swift(lambda ids: model.initial_cache(ids, T))(ids)
        results.append(array(swift(model.step)(target, cache, 0)[0]))
    np.testing.assert_allclose(*results, atol=1e-5)


def test_a_step_keeps_the_shapes_and_dtypes_of_the_cache():
    model = made()
    source, target = batch()
    cache = swift(lambda ids: model.initial_cache(ids, T))(source)
    _, new_cache = swift(model.step)(target[:, :1], cache, 0)
    before, after = keras.tree.flatten(cache), keras.tree.flatten(new_cache)
    assert [(tuple(x.shape), x.dtype) for x in before] == [
        (tuple(x.shape), x.dtype) for x in after
    ]
    # A mask, and two blocks with keys and values of two attentions each.
    assert len(before) == 1 + 2 * 4


def test_a_step_does_not_change_the_cache_it_was_given():
    model = made()
    source, target = batch()
    cache = swift(lambda ids: model.initial_cache(ids, T))(source)
    before = [array(x).copy() for x in keras.tree.flatten(cache)]
    swift(model.step)(target[:, :1], cache, 0)
    for old, new in zip(before, keras.tree.flatten(cache), strict=True):
        np.testing.assert_array_equal(old, array(new))


def test_a_compiled_step_gives_the_same_logits():
    model = made()
    source, target = batch(target_lengths=(5, 5, 5))
    cache = compiled(lambda ids: model.initial_cache(ids, T))(source)
    found, _ = compiled(model.step)(target, cache, np.int32(0))
    np.testing.assert_allclose(
        array(found), logits(model, source, target), atol=1e-5
    )


def test_encoding_is_what_the_decoder_of_a_full_pass_reads():
    model = made()
    source, target = batch()

    def by_hand(source, target):
        context = model.encode(source)
        x = model.decoder(
            model.position(model.target_embedding(target)),
            context,
            padding_mask=target != 0,
            context_padding_mask=source != 0,
        )
        return model.logits(x)

    real = target != 0
    np.testing.assert_allclose(
        array(swift(by_hand)(source, target))[real],
        logits(model, source, target)[real],
        atol=1e-5,
    )


def test_encoding_can_return_the_weights_of_each_block():
    model = made()
    source, _ = batch()
    encoded, scores = model.encode(source, return_attention_scores=True)
    np.testing.assert_array_equal(array(encoded), array(model.encode(source)))
    assert len(scores) == 2

"""Beams as alternatives at one position of a model's step."""

import keras
import numpy as np
from models.transformer.made import V_TARGET
from models.transformer.made import batch
from models.transformer.made import logits
from models.transformer.made import made

ROWS, BEAMS, STEPS = 2, 3, 4


def draw_tokens():
    rng = np.random.default_rng(5)
    return rng.integers(3, V_TARGET, (STEPS, ROWS, BEAMS), dtype="int32")


def paths():
    """Yield, for each step and beam, the beams that it descends from."""
    parents = [[0, 1, 2], [2, 0, 0], [1, 1, 2]]
    trail = [[beam] for beam in range(BEAMS)]
    yield trail
    for parent in parents:
        trail = [
            [*trail[parent[beam]][:-1], parent[beam], beam]
            for beam in range(BEAMS)
        ]
        yield trail


def test_a_beam_sees_its_own_past_and_no_other():
    model = made()
    source = batch()[0][:ROWS]
    tokens = draw_tokens()
    cache = model.initial_cache(source, STEPS, num_beams=BEAMS)
    for index, trails in enumerate(paths()):
        ancestors = np.zeros((ROWS, BEAMS, STEPS), "int32")
        for beam, trail in enumerate(trails):
            ancestors[:, beam, : index + 1] = trail
        found, cache, weights = model.step(
            keras.ops.convert_to_tensor(tokens[index]),
            cache,
            index,
            keras.ops.convert_to_tensor(ancestors),
            return_attention_scores=True,
        )
        own = np.asarray(weights["decoder"][0])
        assert own.shape == (ROWS, 2, BEAMS, STEPS * BEAMS)
        np.testing.assert_allclose(own.sum(-1), 1, atol=1e-5)
        for beam, trail in enumerate(trails):
            fed = np.stack(
                [tokens[time, :, place] for time, place in enumerate(trail)],
                axis=1,
            )
            expected = logits(model, source, fed)[:, -1]
            np.testing.assert_allclose(
                np.asarray(found)[:, beam], expected, atol=1e-4
            )


def test_a_cache_that_grows_says_the_same():
    model = made()
    source = batch()[0][:ROWS]
    tokens = draw_tokens()
    whole = model.initial_cache(source, STEPS, num_beams=BEAMS)
    growing = model.initial_cache(source, 1, num_beams=BEAMS)
    own = np.broadcast_to(np.arange(BEAMS)[:, None], (ROWS, BEAMS, STEPS))
    own = keras.ops.convert_to_tensor(own.astype("int32"))
    for index, length in enumerate((1, 3, 3, 4)):
        growing = model.grow_cache(growing, length, BEAMS)
        found, growing = model.step(tokens[index], growing, index, own)
        expected, whole = model.step(tokens[index], whole, index, own)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    same = model.grow_cache(growing, STEPS, BEAMS)["blocks"][0]["self"]
    assert same[0].shape == growing["blocks"][0]["self"][0].shape


def test_the_weights_of_a_step_are_those_of_the_pass():
    model = made()
    source, target = (array[:ROWS] for array in batch())
    target = np.where(target == 0, 3, target).astype("int32")
    cache = model.initial_cache(source, target.shape[1])
    expected = model.attention_scores(source, target)
    for index in range(target.shape[1]):
        _, cache, weights = model.step(
            target[:, index : index + 1],
            cache,
            index,
            return_attention_scores=True,
        )
        for name in ("decoder", "cross"):
            for layer, found in zip(expected[name], weights[name], strict=True):
                np.testing.assert_allclose(
                    np.asarray(found)[:, :, 0],
                    np.asarray(layer)[:, :, index],
                    atol=1e-5,
                )


def test_target_vectors_are_what_the_logits_are_made_of():
    model = made()
    source, target = batch()
    vectors = model.target_vectors(source, target)
    np.testing.assert_allclose(
        model.logits(vectors), logits(model, source, target), atol=1e-4
    )

"""A shared block is the plain block, taken again and again."""

import numpy as np
import pytest
from gradients import weight_gradients
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import AdaptiveHalting
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import LearnedPositionalEncoding
from keras_tfm.layers import UniversalEncoder

B, T, H, D, F, STEPS = 2, 5, 3, 4, 11, 3
E = H * D
X = np.random.default_rng(0).normal(size=(B, T, E)).astype("float32")
REAL = np.arange(T) < np.array([[3], [5]])


def make(**options):
    encoder = UniversalEncoder(STEPS, H, F, **options)
    encoder.build((B, T, E))
    randomise(encoder)
    return encoder


def sinusoids(positions):
    """Tensor2Tensor's: all sines, then all cosines."""
    pairs = E // 2
    rates = 10000.0 ** (-np.arange(pairs) / (pairs - 1))
    angles = np.asarray(positions)[..., None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def states(encoder, positions=None, **options):
    """Take the steps by a plain block with the same weights."""
    block = EncoderBlock(H, F, normalize_first=encoder.normalize_first)
    block.build((B, T, E))
    block.set_weights(encoder.block.get_weights())
    x, befores, afters = X, [], []
    for step in range(STEPS):
        x = x + sinusoids(np.arange(T) if positions is None else positions)
        x = (x + sinusoids([step])).astype("float32")
        befores.append(x)
        x = ops.convert_to_numpy(block(x, **options))
        afters.append(x)
    return np.stack(befores), np.stack(afters)


def finished(encoder, x):
    return x if encoder.norm is None else encoder.norm(x)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_it_is_the_plain_block_taken_again(pre_norm):
    encoder = make(normalize_first=pre_norm)
    options = {"padding_mask": REAL, "use_causal_mask": True}
    _, afters = states(encoder, **options)
    found = ops.convert_to_numpy(encoder(X, **options))
    expected = ops.convert_to_numpy(finished(encoder, afters[-1]))
    np.testing.assert_allclose(found[REAL], expected[REAL], atol=1e-4)


def test_positions_may_start_anew():
    positions = np.array([[0, 1, 2, 0, 1], [0, 1, 0, 1, 2]])
    encoder = make()
    _, afters = states(encoder, positions)
    np.testing.assert_allclose(
        encoder(X, positions=positions),
        finished(encoder, afters[-1]),
        atol=1e-4,
    )


@pytest.mark.parametrize("pre_norm", [True, False])
def test_halting_sums_the_states_by_the_weights(pre_norm):
    encoder = make(normalize_first=pre_norm, halting=AdaptiveHalting())
    befores, afters = states(encoder)
    run = encoder.halting.begin(X)
    for step, before in enumerate(befores):
        run.decide(before, last=step + 1 == STEPS)
        run.collect(afters[step])
    found, times = encoder(X, return_ponder_times=True)
    np.testing.assert_allclose(
        found, finished(encoder, run.output), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(times, run.ponder_times, atol=1e-4)


def test_the_ponder_cost_is_a_loss_of_the_training_alone(monkeypatch):
    losses = []
    monkeypatch.setattr(
        UniversalEncoder, "add_loss", lambda _, loss: losses.append(loss)
    )
    encoder = make(halting=AdaptiveHalting(ponder_cost=0.7))
    _, times = encoder(X, padding_mask=REAL, return_ponder_times=True)
    assert losses == []
    encoder(X, padding_mask=REAL, training=True)
    expected = 0.7 * np.asarray(times)[REAL].mean()
    assert float(losses[0]) == pytest.approx(expected, abs=1e-5)
    make(halting=AdaptiveHalting(ponder_cost=0))(X, training=True)
    make()(X, training=True)
    assert len(losses) == 1


def test_without_halting_each_position_takes_all_steps():
    _, times = make()(X, return_ponder_times=True)
    np.testing.assert_array_equal(times, np.full((B, T), STEPS))


def test_what_a_padded_position_holds_reaches_nothing():
    encoder = make(halting=AdaptiveHalting())
    flags = {"return_attention_scores": True, "return_ponder_times": True}
    x = X.copy()
    results = []
    for garbage in (0.0, np.nan):
        x[~REAL] = garbage
        output, scores, times = encoder(x, padding_mask=REAL, **flags)
        assert len(scores) == STEPS
        for weights in scores:
            assert (np.asarray(weights)[0, :, :, 3:] == 0).all()
        results.append((np.asarray(output), np.asarray(times)))
    for plain, spoilt in zip(*results, strict=True):
        np.testing.assert_array_equal(plain[REAL], spoilt[REAL])
        assert np.isfinite(spoilt).all()


def test_every_weight_has_a_finite_gradient():
    encoder = make(halting=AdaptiveHalting())
    gradients = weight_gradients(
        encoder,
        lambda outputs: ops.sum(outputs[0] ** 2) + ops.mean(outputs[1]),
        X,
        padding_mask=REAL,
        return_ponder_times=True,
    )
    for path, gradient in gradients.items():
        assert np.isfinite(gradient).all(), path
    halting = [g for path, g in gradients.items() if "halting" in path]
    assert len(halting) == 2
    assert all(np.abs(gradient).max() > 1e-4 for gradient in halting)


def test_depth_costs_no_weights():
    deeper = UniversalEncoder(STEPS + 4, H, F)
    deeper.build((B, T, E))
    assert deeper.count_params() == make().count_params()


def test_the_signals_are_parts_like_others():
    encoder = make(
        position=LearnedPositionalEncoding(T, name="place"),
        step_signal=LearnedPositionalEncoding(STEPS, name="when"),
    )
    assert encoder.step_signal.weights[0].shape == (STEPS, E)
    restored = UniversalEncoder.from_config(encoder.get_config())
    restored.build((B, T, E))
    restored.set_weights(encoder.get_weights())
    np.testing.assert_allclose(restored(X), encoder(X), atol=1e-6)

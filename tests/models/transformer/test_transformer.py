"""Transformer: what may look at what, its arguments, training, nesting."""

import inspect
import itertools

import keras
import numpy as np
import pytest
from backend_functions import compiled
from backend_functions import swift
from models.transformer.made import KINDS
from models.transformer.made import SIZES
from models.transformer.made import V_SOURCE
from models.transformer.made import V_TARGET
from models.transformer.made import B
from models.transformer.made import S
from models.transformer.made import T
from models.transformer.made import batch
from models.transformer.made import fresh
from models.transformer.made import logits
from models.transformer.made import made

from keras_tfm.models import Transformer
from keras_tfm.training import InverseSquareRoot
from keras_tfm.training import SmoothedCrossEntropy
from keras_tfm.training import TokenAccuracy


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


def named(source, target):
    return {"source_ids": source, "target_ids": target}


def padded(ids, more):
    return np.pad(ids, ((0, 0), (0, more)))


@pytest.mark.parametrize(("tie", "normalize_first"), KINDS)
def test_padding_more_changes_no_logit(tie, normalize_first):
    model = made(tie, normalize_first)
    source, target = batch()
    expected = logits(model, source, target)
    found = logits(model, padded(source, 4), padded(target, 6))
    real = target != 0
    np.testing.assert_allclose(found[:, :T][real], expected[real], atol=1e-5)


@pytest.mark.parametrize(("tie", "normalize_first"), KINDS)
def test_the_future_never_changes_a_logit(tie, normalize_first):
    model = made(tie, normalize_first)
    source, target = batch(target_lengths=(5, 5, 5))
    expected = logits(model, source, target)
    for place in range(T):
        changed = target.copy()
        changed[:, place] = changed[:, place] % (V_TARGET - 1) + 1
        found = logits(model, source, changed)
        np.testing.assert_array_equal(found[:, :place], expected[:, :place])
        assert (
            np.abs(found[:, place:] - expected[:, place:]).max(axis=(0, 2))
            > 1e-4
        ).all()


def test_every_source_token_reaches_every_target_position():
    model = made()
    source, target = batch((7, 7, 7), (5, 5, 5))
    expected = logits(model, source, target)
    for place in range(S):
        changed = source.copy()
        changed[:, place] = changed[:, place] % (V_SOURCE - 1) + 1
        found = np.abs(logits(model, changed, target) - expected)
        assert (found.max(axis=(0, 2)) > 1e-5).all()


def test_what_padding_holds_reaches_no_real_logit():
    model = fresh(None)
    source, target = batch()
    expected = logits(model, source, target)
    for layer in (model.source_embedding, model.target_embedding):
        table = array(layer.embeddings).copy()
        table[0] = np.nan
        layer.embeddings.assign(table)
    found = logits(model, source, target)
    real = target != 0
    np.testing.assert_array_equal(found[real], expected[real])


def test_a_row_does_not_depend_on_the_others():
    model = made("all", False)
    source, target = batch()
    together = logits(model, source, target)
    for row in (1, 2):
        alone = logits(model, source[row : row + 1], target[row : row + 1])
        real = target[row] != 0
        np.testing.assert_allclose(
            alone[0][real], together[row][real], atol=1e-5
        )


def test_a_source_of_padding_only_gives_finite_logits():
    source, target = batch(source_lengths=(0, 4, 7))
    found = logits(made(), source, target)
    assert np.isfinite(found[target != 0]).all()


def test_padding_may_have_another_id():
    model = fresh(pad_id=3)
    source, target = (np.where(x == 3, 4, x) for x in batch((7,) * 3, (5,) * 3))
    expected = logits(model, source, target)
    found = logits(
        model,
        np.pad(source, ((0, 0), (0, 2)), constant_values=3),
        np.pad(target, ((0, 0), (0, 2)), constant_values=3),
    )
    np.testing.assert_allclose(found[:, :T], expected, atol=1e-5)
    assert model.find_tokens.pad_id == 3


@pytest.mark.parametrize("normalize_first", [True, False])
def test_attention_scores_are_those_of_the_blocks(normalize_first):
    model = made("decoder", normalize_first)
    source, target = batch()
    scores = swift(model.attention_scores)(source, target)
    assert set(scores) == {"encoder", "decoder", "cross"}
    shapes = {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}
    for name, lengths in shapes.items():
        assert len(scores[name]) == 2
        for weights in scores[name]:
            assert tuple(weights.shape) == (B, 2, *lengths)
            np.testing.assert_allclose(array(weights).sum(-1), 1.0, atol=1e-5)

    def by_hand(source, target):
        real = source != 0
        x, found = model.position(model.source_embedding(source)), []
        for block in model.encoder.blocks:
            x, weights = block(
                x, padding_mask=real, return_attention_scores=True
            )
            found.append(weights)
        context = x if model.encoder.norm is None else model.encoder.norm(x)
        x = model.position(model.target_embedding(target))
        for block in model.decoder.blocks:
            x, own, cross = block(
                x,
                context,
                padding_mask=target != 0,
                context_padding_mask=real,
                return_attention_scores=True,
            )
            found += [own, cross]
        return found

    found = swift(by_hand)(source, target)
    expected = [
        *scores["encoder"],
        *itertools.chain(*zip(scores["decoder"], scores["cross"], strict=True)),
    ]
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array(mine), array(other))


def test_scores_are_zero_where_nothing_may_be_seen():
    source, target = batch()
    scores = swift(made().attention_scores)(source, target)
    for weights in scores["cross"]:
        hidden = np.broadcast_to((source == 0)[:, None, None], weights.shape)
        assert (array(weights)[hidden] == 0.0).all()
    for weights in scores["decoder"]:
        assert (np.triu(array(weights), 1) == 0.0).all()


def test_one_table_serves_source_target_and_softmax():
    model = made("all", True)
    assert model.source_embedding is model.target_embedding
    assert model.project is None
    tables = [w for w in model.weights if V_TARGET in w.shape]
    assert len(tables) == 1


def test_the_decoder_shares_its_table_with_the_softmax_only():
    model = made("decoder", True)
    tables = [w for w in model.weights if {V_SOURCE, V_TARGET} & {*w.shape}]
    assert {tuple(w.shape) for w in tables} == {(V_SOURCE, 6), (V_TARGET, 6)}
    assert len(tables) == 2
    assert model.source_embedding is not model.target_embedding
    assert model.project is None


def test_untied_models_have_three_tables():
    model = made(None, True)
    tables = [w for w in model.weights if {V_SOURCE, V_TARGET} & {*w.shape}]
    assert sorted(tuple(w.shape) for w in tables) == [
        (6, V_TARGET),
        (V_TARGET, 6),
        (V_SOURCE, 6),
    ]
    assert model.project.bias is None


def test_the_target_vocabulary_is_that_of_the_source_unless_given():
    model = Transformer(7, **SIZES)
    assert model.target_embedding.vocabulary_size == 7
    assert model.output_shape == (None, None, 7)


def test_the_decoder_may_have_another_depth():
    model = Transformer(7, **{**SIZES, "num_decoder_layers": 1})
    assert len(model.encoder.blocks) == 2
    assert len(model.decoder.blocks) == 1


@pytest.mark.parametrize(
    ("normalize_first", "norms"), [(True, 12), (False, 10)]
)
def test_a_final_norm_follows_pre_norm_stacks_only(normalize_first, norms):
    model = made("decoder", normalize_first)
    gammas = [w for w in model.weights if w.path.endswith("gamma")]
    assert len(gammas) == norms  # 2 x 2 + 2 x 3 within the blocks.


def test_the_epsilon_reaches_every_norm():
    model = fresh(layer_norm_epsilon=3e-5)
    norms = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization)
    ]
    assert len(norms) == 12
    assert {layer.epsilon for layer in norms} == {3e-5}


def test_every_weight_has_a_path_of_its_own():
    paths = [weight.path for weight in made(None, True).weights]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_dim": 7}, "hidden_dim=7, num_heads=2. Try hidden_dim=6"),
        ({"num_heads": 0}, "`num_heads` must be a whole number of at least 1"),
        ({"hidden_dim": 6.0}, "Received: hidden_dim=6.0"),
        ({"num_layers": 0}, "`num_layers` must be a whole number"),
        ({"intermediate_dim": -1}, "`intermediate_dim` must be a whole number"),
        ({"dropout": 1.0}, r"`dropout` must be a number in \[0, 1\)"),
        ({"attention_dropout": 2}, "Received: dropout=2"),
        ({"layer_norm_epsilon": 0}, "must be a number above 0"),
        ({"tie_embeddings": "al"}, "Did you mean 'all'"),
        ({"position_layout": "concatenate"}, "Did you mean 'concat'"),
        ({"tie_embeddings": "all"}, "needs one vocabulary"),
    ],
)
def test_arguments_out_of_range_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Transformer(V_SOURCE, V_TARGET, **{**SIZES, **change})


def test_tying_two_vocabularies_says_what_to_do():
    with pytest.raises(ValueError, match="needs one vocabulary") as info:
        Transformer(13, 11, tie_embeddings="all")
    assert "source_vocabulary_size=13, target_vocabulary_size=11" in str(
        info.value
    )
    assert 'use `tie_embeddings="decoder"`' in str(info.value)


def test_the_defaults_are_those_of_the_paper_with_pre_norm():
    parameters = inspect.signature(Transformer).parameters
    defaults = {name: p.default for name, p in parameters.items()}
    assert defaults["num_layers"] == 6
    assert defaults["hidden_dim"] == 512
    assert defaults["intermediate_dim"] == 2048
    assert defaults["num_heads"] == 8
    assert defaults["dropout"] == 0.1
    assert defaults["normalize_first"] is True
    assert defaults["layer_norm_epsilon"] == 1e-6


def test_ids_out_of_range_are_an_error_outside_a_compiled_function():
    source, target = batch()
    target[0, 0] = V_TARGET
    with pytest.raises(ValueError, match="token ids from 0 to 10"):
        made()({"source_ids": source, "target_ids": target})


def test_dropout_is_active_in_training_only():
    model = fresh(num_layers=1)
    source, target = batch()
    inputs = named(source, target)
    plain, again = (array(model(inputs, training=False)) for _ in range(2))
    np.testing.assert_array_equal(plain, again)
    first, second = (array(model(inputs, training=True)) for _ in range(2))
    real = target != 0
    assert np.abs(first - second)[real].max() > 1e-3
    assert np.abs(first - plain)[real].max() > 1e-3


def test_inputs_come_by_name_in_any_order():
    model = made()
    source, target = batch()
    found = swift(lambda inputs: model(inputs))(
        {"target_ids": target, "source_ids": source}
    )
    np.testing.assert_allclose(
        array(found), logits(model, source, target), atol=1e-6
    )


def test_a_model_works_inside_another_and_keeps_its_masks():
    model = made("all", False)
    target_ids = keras.Input((None,), dtype="int32", name="decoder_reads")
    source_ids = keras.Input((None,), dtype="int32", name="encoder_reads")
    x = model({"target_ids": target_ids, "source_ids": source_ids})
    outer = keras.Model(
        [target_ids, source_ids], keras.layers.Activation("softmax")(x)
    )
    source, target = batch()
    scores = logits(model, source, target).astype("float64")
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    call = swift(lambda target, source: outer([target, source]))
    real = target != 0
    np.testing.assert_allclose(
        array(call(target, source))[real], expected[real], atol=1e-5
    )
    more = array(call(padded(target, 2), padded(source, 3)))[:, :T]
    np.testing.assert_allclose(more[real], expected[real], atol=1e-5)


def test_a_compiled_model_gives_the_same_logits():
    model = made()
    call = compiled(lambda source, target: model(named(source, target)))
    for lengths in ((7, 4, 1), (1, 2, 3)):
        source, target = batch(source_lengths=lengths)
        np.testing.assert_allclose(
            array(call(source, target)),
            array(model(named(source, target))),
            atol=1e-5,
        )


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_model_in_half_precision_trains_with_finite_numbers(policy):
    model = fresh("all", True, dtype=policy, num_layers=1)
    source, target = batch()
    found = model.predict(named(source, target), verbose=0)
    assert f"mixed_{found.dtype}" == policy
    found = found.astype("float32")
    assert np.isfinite(found[target != 0]).all()
    exact = logits(fresh("all", True, num_layers=1), source, target)
    real = target != 0
    np.testing.assert_allclose(found[real], exact[real], atol=0.3)
    model.compile("adam", SmoothedCrossEntropy(0.1))
    before = [array(w).copy() for w in model.trainable_weights]
    loss = model.train_on_batch(named(source, target), target)
    assert np.isfinite(loss)
    after = [array(w) for w in model.trainable_weights]
    assert all(np.isfinite(w).all() for w in after)
    assert any((a != b).any() for a, b in zip(after, before, strict=True))


def test_a_policy_reaches_every_layer():
    model = fresh("all", True, dtype="mixed_bfloat16", num_layers=1)
    layers = [
        layer
        for layer in model._flatten_layers(include_self=False)
        if layer.weights
    ]
    assert {layer.dtype_policy.name for layer in layers} == {"mixed_bfloat16"}
    keras.config.set_dtype_policy("mixed_float16")
    model = fresh("all", True, dtype="float32", num_layers=1)
    layers = [
        layer
        for layer in model._flatten_layers(include_self=False)
        if layer.weights
    ]
    assert {layer.dtype_policy.name for layer in layers} == {"float32"}


def test_fit_with_xla_learns_a_batch_by_heart():
    model = Transformer(
        V_TARGET,
        tie_embeddings="all",
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=32,
        num_heads=2,
        dropout=0.0,
    )
    model.compile(
        keras.optimizers.Adam(InverseSquareRoot(0.02, 20)),
        SmoothedCrossEntropy(),
        metrics=[TokenAccuracy()],
        jit_compile=True,
    )
    assert model.jit_compile is True
    source, labels = batch()
    fed = np.pad(labels, ((0, 0), (1, 0)), constant_values=1)[:, :-1]
    fed *= labels != 0
    history = model.fit(
        {"source_ids": source, "target_ids": fed},
        labels,
        batch_size=B,
        epochs=60,
        verbose=0,
    ).history
    assert history["loss"][-1] < 0.2 * history["loss"][0]
    assert history["token_accuracy"][-1] == 1.0
    assert model.jit_compile is True


def test_no_implicit_mask_clings_to_the_logits():
    ids = np.array([[5, 4, 0]], "int32")
    output = made(tie_embeddings="decoder")(
        {"source_ids": ids, "target_ids": ids}
    )
    assert getattr(output, "_keras_mask", None) is None
    keras.layers.Softmax()(output)

"""The mask contract, for every layer that takes masks, however they come."""

import dataclasses

import keras
import numpy as np
import pytest
from gradients import compiled
from gradients import weight_gradients
from hypothesis import Phase
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import ops
from masked_layers import ATTENTIONS
from masked_layers import CONTEXT_KINDS
from masked_layers import KINDS
from masked_layers import SELF_KINDS
from masked_layers import B
from masked_layers import E
from masked_layers import F
from masked_layers import H
from masked_layers import Masks
from masked_layers import S
from masked_layers import T
from masked_layers import arguments
from masked_layers import layer_of
from masked_layers import rewind_dropouts
from masked_layers import run
from masked_layers import sequences
from masked_layers import to_float
from masked_layers import with_mask

from keras_tfm.layers import Decoder
from keras_tfm.layers import DecoderBlock
from keras_tfm.layers import Encoder
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import FeedForward
from keras_tfm.layers import LearnedPositionalEncoding
from keras_tfm.layers import MultiHeadSelfAttention
from keras_tfm.layers import OneHotPositionalEncoding
from keras_tfm.layers import PositionalEncoding
from keras_tfm.layers import Residual
from keras_tfm.layers import TokenEmbedding

each_kind = pytest.mark.parametrize("kind", KINDS)
each_norm = pytest.mark.parametrize("pre_norm", [True, False])
# Not shrunk: masks come from seeds, and a failure should not take minutes.
PHASES = (Phase.explicit, Phase.generate)
few = settings(max_examples=6, phases=PHASES)
very_few = settings(max_examples=3, phases=PHASES)

GARBAGE = [np.nan, np.inf, -np.inf, 1e9]
RIGHT_PADDED = np.array([[True] * 3 + [False] * 2, [True] * 5])
CONTEXT_RIGHT_PADDED = np.array([[True] * 7, [True] * 2 + [False] * 5])


@st.composite
def any_masks(draw, causal=None):
    """Draw which masks are there and, from a seed, what they hold."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    mostly = st.sampled_from([True, True, True, False])

    def padding(length):
        return rng.random((B, length)) < 0.7 if draw(mostly) else None

    def attention(keys):
        shapes = [(T, keys), (B, T, keys), (B, H, T, keys), None]
        shape = draw(st.sampled_from(shapes))
        return None if shape is None else rng.random(shape) < 0.7

    return Masks(
        padding=padding(T),
        context_padding=padding(S),
        attention=attention(T),
        context_attention=attention(S),
        causal=draw(st.booleans()) if causal is None else causal,
        implicit=draw(st.booleans()),
    )


# How the layer is made and called: none of it may change what a mask means.
modes = st.fixed_dictionaries(
    {
        "normalize_first": st.booleans(),
        "training": st.booleans(),
        "scores": st.booleans(),
    }
)


def called(kind, mode, x, context, masks):
    layer = layer_of(kind, mode["normalize_first"], dropout=0.3)
    return run(layer, x, context, masks, mode["scores"], mode["training"])[0]


@each_kind
@few
@given(any_masks(causal=True), modes, st.integers(1, T - 1))
def test_the_future_cannot_change_the_past(kind, masks, mode, split):
    x, context = sequences()
    before = called(kind, mode, x, context, masks)
    if kind == "MultiHeadAttention":
        # The last query is aligned with the last key.
        context = changed_from(context, S - T + split)
    else:
        x = changed_from(x, split)
    after = called(kind, mode, x, context, masks)
    np.testing.assert_array_equal(after[:, :split], before[:, :split])


def changed_from(sequence, position):
    """Change a sequence from a position on, in a way no norm takes back."""
    sequence = sequence.copy()
    later = sequence[:, position:]
    sequence[:, position:] = 3.0 * later[..., ::-1] + later**2
    return sequence


@each_kind
def test_without_a_causal_mask_the_future_does_change_the_past(kind):
    x, context = sequences()
    layer = layer_of(kind)
    before, _ = run(layer, x, context, Masks())
    x, context = changed_from(x, T - 1), changed_from(context, S - 1)
    after, _ = run(layer, x, context, Masks())
    assert np.abs(after - before)[:, :-1].max(axis=-1).min() > 1e-3


@each_kind
@few
@given(any_masks(), modes, st.sampled_from([*GARBAGE, 1.0, -3.0]))
def test_what_padding_holds_cannot_change_a_real_position(
    kind, masks, mode, garbage
):
    x, context = sequences()
    before = called(kind, mode, x, context, masks)
    x, context = with_garbage(x, context, masks, garbage)
    after = called(kind, mode, x, context, masks)
    real = masks.real()
    assert np.isfinite(after[real]).all()
    np.testing.assert_array_equal(after[real], before[real])


def with_garbage(x, context, masks, garbage):
    """Write `garbage` to every padded position."""
    x, context = x.copy(), context.copy()
    if masks.padding is not None:
        x[~masks.padding] = garbage
    if masks.context_padding is not None:
        context[~masks.context_padding] = garbage
    return x, context


@each_kind
@each_norm
@pytest.mark.parametrize("implicit", [True, False])
def test_padding_gives_what_the_shorter_sequence_gives(
    kind, pre_norm, implicit
):
    x, context = sequences()
    layer = layer_of(kind, pre_norm)
    masks = Masks(RIGHT_PADDED, CONTEXT_RIGHT_PADDED, implicit=implicit)
    padded, _ = run(layer, x, context, masks)
    for row, (length, context_length) in enumerate([(3, 7), (5, 2)]):
        alone, _ = run(
            layer,
            x[row : row + 1, :length],
            context[row : row + 1, :context_length],
            Masks(),
        )
        np.testing.assert_allclose(padded[row, :length], alone[0], atol=1e-5)


def real_loss(real):
    """Make a loss of the real positions of the first output."""

    def loss(outputs):
        output = ops.cast(keras.tree.flatten(outputs)[0], "float32")
        kept = ops.where(ops.expand_dims(real, -1), output, 0.0)
        # The cosine has no symmetry that a layer norm could cancel.
        return ops.sum(kept * ops.cos(ops.arange(E, dtype="float32")))

    return loss


def gradients_of(layer, x, context, masks, training=False):
    rewind_dropouts(layer)
    tensors, flags = arguments(type(layer).__name__, x, context, masks)
    return weight_gradients(
        layer, real_loss(masks.real()), *tensors, **flags, training=training
    )


@each_kind
@very_few
@given(any_masks(), st.booleans(), st.booleans(), st.sampled_from(GARBAGE))
def test_what_padding_holds_reaches_no_gradient(
    kind, masks, pre_norm, training, garbage
):
    x, context = sequences()
    layer = layer_of(kind, pre_norm, dropout=0.3)
    clean = gradients_of(layer, x, context, masks, training)
    x, context = with_garbage(x, context, masks, garbage)
    spoilt = gradients_of(layer, x, context, masks, training)
    assert clean.keys() == spoilt.keys()
    for path, gradient in clean.items():
        assert np.isfinite(gradient).all(), path
        np.testing.assert_array_equal(spoilt[path], gradient, err_msg=path)


@each_kind
@few
@given(any_masks(), modes)
def test_hidden_pairs_weigh_0_and_rows_sum_to_1_or_0(kind, masks, mode):
    x, context = sequences()
    layer = layer_of(kind, mode["normalize_first"], dropout=0.3)
    _, weights = run(layer, x, context, masks, True, mode["training"])
    allowed = masks.allowed(kind)
    assert len(weights) == len(allowed)
    for weight, mask in zip(weights, allowed, strict=True):
        assert weight.shape == mask.shape
        assert (weight[~mask] == 0.0).all()
        np.testing.assert_allclose(
            weight.sum(-1), mask.any(-1).astype("float32"), atol=1e-5
        )


@each_kind
@few
@given(any_masks(), st.booleans(), st.booleans())
def test_asking_for_scores_never_changes_the_output(
    kind, masks, pre_norm, training
):
    x, context = sequences()
    layer = layer_of(kind, pre_norm, dropout=0.3)
    with_scores, _ = run(layer, x, context, masks, True, training)
    without, none = run(layer, x, context, masks, False, training)
    assert not none
    np.testing.assert_array_equal(with_scores, without)


def hiding_all_from(query):
    """Masks of rank 3 that let one query attend nowhere."""
    mask = np.ones((B, T, T), bool)
    context_mask = np.ones((B, T, S), bool)
    mask[0, query] = context_mask[0, query] = False
    return Masks(attention=mask, context_attention=context_mask)


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "bfloat16"])
@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_a_query_that_may_attend_nowhere_gives_exactly_0(
    kind, dtype, scores, training
):
    layer = layer_of(kind, dropout=0.3, use_bias=False, dtype=dtype)
    x, context = sequences()
    output, weights = run(
        layer, x, context, hiding_all_from(2), scores, training
    )
    assert (output[0, 2] == 0.0).all()
    assert np.isfinite(output).all()
    assert (output[1] != 0.0).any()
    if scores:
        assert (weights[0][0, :, 2] == 0.0).all()


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_with_a_bias_such_a_query_gives_the_bias(kind):
    layer = layer_of(kind)
    x, context = sequences()
    output, _ = run(layer, x, context, hiding_all_from(2))
    np.testing.assert_array_equal(
        output[0, 2], to_float(layer.attention_output.bias)
    )


@each_kind
@pytest.mark.parametrize(
    ("pre_norm", "dtype"), [(True, "float32"), (False, "mixed_float16")]
)
def test_a_query_that_may_attend_nowhere_keeps_all_gradients_finite(
    kind, pre_norm, dtype
):
    layer = layer_of(kind, pre_norm, dtype=dtype)
    x, context = sequences()
    masks = hiding_all_from(2)
    masks = dataclasses.replace(
        masks,
        padding=np.array([[True] * T, [False] * T]),
        context_padding=np.array([[True] * S, [False] * S]),
    )
    output, weights = run(layer, x, context, masks, scores=True)
    assert np.isfinite(output).all()
    for weight in weights:
        assert (weight[0, :, 2] == 0.0).all()
        assert (weight[1] == 0.0).all()
    for path, gradient in gradients_of(layer, x, context, masks).items():
        assert np.isfinite(gradient).all(), path


@each_kind
@few
@given(any_masks(), st.integers(0, 99))
def test_an_explicit_padding_mask_beats_the_implicit_one(kind, masks, seed):
    x, context = sequences()
    rng = np.random.default_rng(seed)
    masks = dataclasses.replace(
        masks,
        padding=rng.random((B, T)) < 0.6,
        context_padding=rng.random((B, S)) < 0.6,
        implicit=False,
    )
    layer = layer_of(kind)
    expected, _ = run(layer, x, context, masks)
    if kind != "MultiHeadAttention":
        x = with_mask(x, rng.random((B, T)) < 0.6)
    context = with_mask(context, rng.random((B, S)) < 0.6)
    tensors, flags = arguments(kind, x, context, masks)
    np.testing.assert_array_equal(to_float(layer(*tensors, **flags)), expected)


@each_kind
def test_the_inputs_keep_their_own_masks(kind):
    x, context = sequences()
    masks = Masks(RIGHT_PADDED, CONTEXT_RIGHT_PADDED, implicit=True)
    tensors, flags = arguments(kind, x, context, masks)
    before = [tensor._keras_mask for tensor in tensors]
    copies = [to_float(tensor) for tensor in tensors]
    layer_of(kind)(*tensors, **flags, return_attention_scores=True)
    for tensor, mask, copy in zip(tensors, before, copies, strict=True):
        assert tensor._keras_mask is mask
        np.testing.assert_array_equal(to_float(tensor), copy)


@each_kind
@pytest.mark.parametrize("scores", [True, False])
def test_the_implicit_mask_of_the_inputs_passes_on(kind, scores):
    x, context = sequences()
    masks = Masks(RIGHT_PADDED, CONTEXT_RIGHT_PADDED, implicit=True)
    tensors, flags = arguments(kind, x, context, masks)
    output = layer_of(kind)(*tensors, **flags, return_attention_scores=scores)
    output = output[0] if scores else output
    np.testing.assert_array_equal(
        ops.convert_to_numpy(output._keras_mask), RIGHT_PADDED
    )


@pytest.mark.parametrize(
    "layer",
    [
        Residual(FeedForward(F)),
        Residual(MultiHeadSelfAttention(H), normalize_first=False),
        FeedForward(F),
        PositionalEncoding(),
        LearnedPositionalEncoding(T),
        OneHotPositionalEncoding(T),
    ],
    ids=lambda layer: layer.name,
)
def test_the_parts_pass_the_implicit_mask_on(layer):
    output = layer(with_mask(sequences()[0], RIGHT_PADDED))
    np.testing.assert_array_equal(
        ops.convert_to_numpy(output._keras_mask), RIGHT_PADDED
    )


def test_the_mask_of_an_embedding_reaches_the_last_of_many_blocks():
    ids = np.array([[4, 2, 0, 0, 0]])
    shorter = ids[:, :2]
    embedding = TokenEmbedding(7, E)
    layers = [
        embedding,
        PositionalEncoding(),
        keras.layers.Dropout(0.1),
        *[EncoderBlock(H, F) for _ in range(3)],
        Encoder(2, H, F),
    ]

    def encode(tensor):
        for layer in layers:
            tensor = layer(tensor)
        return tensor

    padded, alone = encode(ids), encode(shorter)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(padded._keras_mask), ids != 0
    )
    np.testing.assert_allclose(
        to_float(padded)[:, :2], to_float(alone), atol=1e-5
    )


def test_every_block_that_reads_one_memory_masks_its_padding():
    # Keras's own attention takes the mask off what it has read.
    ids = np.array([[4, 2, 0, 0, 0, 0, 0]])
    x = sequences()[0][:1]
    memory = TokenEmbedding(7, E)(ids)
    shorter = ops.convert_to_tensor(to_float(memory)[:, :2])
    blocks = [DecoderBlock(H, F) for _ in range(3)]
    padded = alone = ops.convert_to_tensor(x)
    for block in blocks:
        padded, alone = block(padded, memory), block(alone, shorter)
        np.testing.assert_allclose(to_float(padded), to_float(alone), atol=1e-5)


MASK_NAMES = {
    **dict.fromkeys(SELF_KINDS, ("padding_mask", "attention_mask")),
    "MultiHeadAttention": ("padding_mask", "attention_mask"),
    **dict.fromkeys(
        ("DecoderBlock", "Decoder"),
        (
            "padding_mask",
            "context_padding_mask",
            "attention_mask",
            "context_attention_mask",
        ),
    ),
}
EVERY_MASK = [(kind, name) for kind in KINDS for name in MASK_NAMES[kind]]


def shape_of(kind, name):
    keys = S if "context" in name or kind == "MultiHeadAttention" else T
    return (B, keys) if "padding" in name else (T, keys)


@pytest.mark.parametrize(("kind", "name"), EVERY_MASK)
def test_a_float_mask_is_an_error_that_tells_the_polarity(kind, name):
    tensors, _ = arguments(kind, *sequences(), Masks())
    mask = np.zeros(shape_of(kind, name), "float32")
    with pytest.raises(TypeError, match="where True means 'may attend'") as e:
        layer_of(kind)(*tensors, **{name: mask})
    assert "Received dtype float32" in str(e.value)
    assert "from_additive_mask" in str(e.value)


@pytest.mark.parametrize(("kind", "name"), EVERY_MASK)
def test_an_integer_mask_is_read_as_a_boolean_one(kind, name):
    tensors, _ = arguments(kind, *sequences(), Masks())
    rng = np.random.default_rng(1)
    mask = rng.integers(0, 2, shape_of(kind, name)).astype(bool)
    layer = layer_of(kind)
    np.testing.assert_array_equal(
        to_float(layer(*tensors, **{name: mask.astype("int32")})),
        to_float(layer(*tensors, **{name: mask})),
    )


@pytest.mark.parametrize(("kind", "name"), EVERY_MASK)
def test_a_mask_of_a_wrong_shape_is_an_error_that_tells_the_right_one(
    kind, name
):
    tensors, _ = arguments(kind, *sequences(), Masks())
    layer = layer_of(kind)
    first, keys = shape_of(kind, name)
    with pytest.raises(ValueError, match=r"`\w*mask` must") as e:
        layer(*tensors, **{name: np.ones((first, keys + 6), bool)})
    assert str(keys) in str(e.value)
    assert str(keys + 6) in str(e.value)
    too_deep = np.ones((1, 1, 1, first, keys), bool)
    with pytest.raises(ValueError, match="must have the shape") as e:
        layer(*tensors, **{name: too_deep})
    assert f"(1, 1, 1, {first}, {keys})" in str(e.value)


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_a_mask_of_rank_2_is_target_by_source_also_for_equal_sizes(kind):
    # Three rows of three queries and three keys: only the rank can tell.
    x = np.random.default_rng(0).normal(size=(3, 3, E)).astype("float32")
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], bool)
    tensors = (x,) if kind in SELF_KINDS else (x, x)
    _, weights = layer_of(kind)(
        *tensors, attention_mask=mask, return_attention_scores=True
    )
    hidden = np.broadcast_to(~mask, weights.shape)
    assert (to_float(weights)[hidden] == 0.0).all()
    assert (to_float(weights)[~hidden] > 0.0).all()


@each_kind
def test_a_padding_mask_of_equal_sizes_covers_keys_not_queries(kind):
    x = np.random.default_rng(0).normal(size=(3, 3, E)).astype("float32")
    mask = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], bool)
    name = "context_padding_mask" if "Decoder" in kind else "padding_mask"
    tensors = (x,) if kind in SELF_KINDS else (x, x)
    outputs = layer_of(kind)(
        *tensors, **{name: mask}, return_attention_scores=True
    )
    weights = to_float(keras.tree.flatten(outputs)[-1])
    hidden = np.broadcast_to(~mask[:, None, None, :], weights.shape)
    assert (weights[hidden] == 0.0).all()
    assert (weights[~hidden] > 0.0).all()


@each_kind
@pytest.mark.parametrize("causal", [True, False])
def test_an_explicit_mask_survives_the_border_of_a_compiled_function(
    kind, causal
):
    x, context = sequences()
    layer = layer_of(kind)
    masks = Masks(
        None if kind == "MultiHeadAttention" else RIGHT_PADDED,
        CONTEXT_RIGHT_PADDED,
        causal=causal,
        implicit=True,
    )
    expected, _ = run(layer, x, context, masks)
    masks = dataclasses.replace(masks, implicit=False)
    tensors, flags = arguments(kind, x, context, masks)
    flags = {k: v for k, v in flags.items() if v is not None}
    result = compiled(layer, **flags)(
        *[ops.convert_to_tensor(tensor) for tensor in tensors]
    )
    np.testing.assert_allclose(to_float(result), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["EncoderBlock", "MultiHeadSelfAttention"])
def test_an_implicit_mask_works_inside_a_compiled_model(kind):
    # On JAX a traced tensor has no attribute for a mask.
    ids = np.array([[4, 2, 5, 0, 0], [3, 3, 0, 0, 0]])
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, layer_of(kind)(TokenEmbedding(7, E)(inputs)))
    model.compile(jit_compile=True)
    compiled_output = model.predict(ids, verbose=0)
    np.testing.assert_allclose(compiled_output, to_float(model(ids)), atol=1e-5)
    for row, length in enumerate([3, 2]):
        alone = to_float(model(ids[row : row + 1, :length]))
        np.testing.assert_allclose(
            compiled_output[row, :length], alone[0], atol=1e-5
        )


@pytest.mark.parametrize("kind", CONTEXT_KINDS)
def test_the_source_mask_covers_the_source_and_nothing_else(kind):
    # A target mask on the source would fit by luck where lengths agree.
    x, context = sequences()
    layer = layer_of(kind)
    masks = Masks(context_padding=CONTEXT_RIGHT_PADDED)
    before, _ = run(layer, x, context, masks)
    after, _ = run(layer, x, changed_from(context, S - 1), masks)
    assert (np.abs(after[0] - before[0]).max(-1) > 1e-4).all()
    np.testing.assert_array_equal(after[1], before[1])


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("cls", [Encoder, Decoder])
def test_very_negative_scores_stay_finite_in_16_bits(cls, dtype):
    layer = cls(2, H, F, dtype=dtype)
    x, _ = sequences()
    inputs = (x,) if cls is Encoder else (x, x)
    layer(*inputs)
    weights = layer.get_weights()
    layer.set_weights([w * 6.0 if w.ndim == 2 else w for w in weights])
    outputs = layer(
        *inputs, padding_mask=RIGHT_PADDED, return_attention_scores=True
    )
    for tensor in keras.tree.flatten(outputs):
        assert np.isfinite(to_float(tensor)).all()

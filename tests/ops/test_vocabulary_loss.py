"""The loss of a projection to a vocabulary, against the one of all logits."""

import re

import keras
import numpy as np
import pytest
import torch
from backend_functions import compiled
from backend_functions import gradients

from keras_tfm.ops.cross_entropy import smoothed_cross_entropy
from keras_tfm.ops.vocabulary_loss import default_chunk_size
from keras_tfm.ops.vocabulary_loss import vocabulary_loss

B, T, E, V = 3, 5, 7, 11
FLAVOURS = ["uniform", "tensor2tensor"]


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


def inputs(seed=0):
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(B, T, E)).astype("float32")
    table = generator.normal(size=(V, E)).astype("float32")
    weights = generator.uniform(0.1, 2.0, (B, T)).astype("float32")
    weights[0, 3:] = weights[2, 0] = 0.0
    return vectors, table, generator.integers(0, V, (B, T)), weights


def of_all_logits(vectors, table, labels, weights, *smoothing):
    logits = keras.ops.matmul(vectors, keras.ops.transpose(table))
    losses = smoothed_cross_entropy(labels, logits, *smoothing, weights=weights)
    return keras.ops.sum(losses)


@pytest.mark.parametrize("chunk_size", [1, 2, 15, 17, None])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_loss_and_gradients_are_those_of_all_logits(flavour, chunk_size):
    vectors, table, labels, weights = inputs()

    def ours(vectors, table):
        return vocabulary_loss(
            vectors, table, labels, weights, 0.1, flavour, chunk_size
        )[0]

    def expected(vectors, table):
        return of_all_logits(vectors, table, labels, weights, 0.1, flavour)

    assert float(ours(vectors, table)) == pytest.approx(
        float(expected(vectors, table)), rel=1e-5
    )
    tensors = [vectors, table]
    for found, wanted in zip(
        gradients(ours, tensors, jit=True)[0],
        gradients(expected, tensors)[0],
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_loss_and_gradients_are_those_of_torch():
    vectors, table, labels, _ = inputs()
    theirs = [torch.tensor(x, requires_grad=True) for x in (vectors, table)]
    logits = torch.nn.functional.linear(*theirs)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1),
        torch.tensor(labels).flatten(),
        label_smoothing=0.1,
    )
    expected.backward()
    weights = np.full((B, T), 1 / (B * T), "float32")

    def ours(vectors, table):
        return vocabulary_loss(
            vectors, table, labels, weights, 0.1, chunk_size=4
        )[0]

    assert float(ours(vectors, table)) == pytest.approx(
        float(expected.detach())
    )
    for found, tensor in zip(
        gradients(ours, [vectors, table])[0], theirs, strict=True
    ):
        np.testing.assert_allclose(found, tensor.grad.numpy(), atol=1e-6)


def test_each_position_has_its_loss_and_whether_it_hit():
    vectors, table, labels, weights = inputs()
    counted = weights != 0
    logits = vectors.astype("float64") @ table.T
    highest = logits.argmax(-1)
    labels[0, 1], labels[1, 4] = highest[0, 1], highest[1, 4]
    _, surprisals, hits = vocabulary_loss(
        vectors, table, labels, weights, 0.1, chunk_size=4
    )
    own = np.take_along_axis(logits, labels[..., None], -1)[..., 0]
    expected = np.log(np.exp(logits).sum(-1)) - own
    np.testing.assert_allclose(
        array(surprisals), expected * counted, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(array(hits), (highest == labels) * counted)


def test_what_has_no_weight_counts_for_nothing_whatever_it_holds():
    vectors, table, labels, weights = inputs()
    spoilt = np.where(weights[..., None] == 0, np.nan, vectors)
    wrong = np.where(weights == 0, -100, labels)

    def loss(vectors, table, labels):
        return vocabulary_loss(
            vectors, table, labels, weights, 0.1, chunk_size=4
        )[0]

    for found, expected in zip(
        gradients(lambda x, t: loss(x, t, wrong), [spoilt, table])[0],
        gradients(lambda x, t: loss(x, t, labels), [vectors, table])[0],
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


def test_nothing_that_counts_has_a_loss_of_zero():
    vectors, table, labels, weights = inputs()

    def loss(vectors, table):
        return vocabulary_loss(vectors, table, labels, 0 * weights)[0]

    assert float(loss(vectors, table)) == 0.0
    for gradient in gradients(loss, [vectors, table])[0]:
        assert (gradient == 0.0).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_small_weights_survive_sixteen_bits(dtype):
    # One over a large batch, times a small error, is 0 in float16.
    vectors, table, labels, _ = inputs()
    weights = np.full((B, T), 1e-7, "float32")

    def by_table(dtype):
        def loss(table):
            return (
                1e7
                * vocabulary_loss(
                    keras.ops.cast(vectors, dtype), table, labels, weights
                )[0]
            )

        return gradients(loss, [table])[0][0]

    found, expected = by_table(dtype), by_table("float32")
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, expected, rtol=2**-7, atol=0.02)
    assert np.abs(expected).max() > 1.0


def test_all_logits_are_never_in_memory():
    vectors, table, labels, weights = inputs()
    program = hlo(
        lambda x, t: vocabulary_loss(x, t, labels, weights, chunk_size=2)[0],
        vectors,
        table,
    )
    assert f"f32[2,{V}]" in program
    for shape in (f"[{B},{T},{V}]", f"[{B * T},{V}]", f"[8,2,{V}]"):
        assert shape not in program
    whole = hlo(
        lambda x, t: of_all_logits(x, t, labels, weights), vectors, table
    )
    assert f"[{B * T},{V}]" in whole or f"[{B},{T},{V}]" in whole


def test_a_few_positions_are_not_filled_up_to_a_large_chunk():
    vectors, table, labels, weights = inputs()
    program = hlo(
        lambda x, t: vocabulary_loss(x, t, labels, weights)[0], vectors, table
    )
    shapes = re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", program)
    assert max(int(n) for shape in shapes for n in shape.split(",")) < 200
    # And no more than a thousand where their number is not known before.
    assert default_chunk_size(V) == 1024


def hlo(loss, *arrays):
    """Return the program that XLA makes of a loss and its gradients."""
    if keras.backend.backend() == "jax":
        import jax

        function = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
        return function.lower(*arrays).compile().as_text()
    import tensorflow as tf

    @tf.function(jit_compile=True, autograph=False)
    def function(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = loss(*tensors)
        return value, tape.gradient(value, tensors)

    tensors = [tf.constant(x) for x in arrays]
    return function.experimental_get_compiler_ir(*tensors)("optimized_hlo")


def test_a_length_that_is_not_known_before_will_do():
    vectors, table, labels, weights = inputs()
    function = compiled(
        lambda *x: vocabulary_loss(*x, label_smoothing=0.1, chunk_size=4)[0]
    )
    for length in (3, 5):
        cut = (
            vectors[:, :length],
            table,
            labels[:, :length],
            weights[:, :length],
        )
        tensors = [keras.ops.convert_to_tensor(x) for x in cut]
        assert float(function(*tensors)) == pytest.approx(
            float(of_all_logits(*cut, 0.1)), rel=1e-5
        )


def test_the_chunks_shrink_as_the_vocabulary_grows():
    sizes = [default_chunk_size(n) for n in (100, 10_000, 250_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 64


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"flavour": "vanilla"}, "flavour"),
        ({"chunk_size": 0}, "chunk_size"),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        vocabulary_loss(*inputs(), **wrong)

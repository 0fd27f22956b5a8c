"""A model that is trained on its loss is trained as on its logits."""

import functools
from unittest import mock

import keras
import numpy as np
import pytest
from backend_functions import gradients
from keras import ops
from models.transformer.made import V_TARGET
from models.transformer.made import fresh

from keras_tfm.models.loss_model import LossModel
from keras_tfm.models.loss_model import with_labels
from keras_tfm.models.packed_model import packed_model
from keras_tfm.training.losses import SmoothedCrossEntropy
from keras_tfm.training.metrics import ChunkedAccuracy
from keras_tfm.training.metrics import ChunkedPerplexity
from keras_tfm.training.metrics import Perplexity
from keras_tfm.training.metrics import TokenAccuracy

B, S, T = 3, 5, 7
NO_DROPOUT = dict.fromkeys(
    ("dropout", "attention_dropout", "activation_dropout"), 0.0
)
# How embeddings are tied, and whether rows are packed.
KINDS = [("all", True), (None, False), ("decoder", False)]


def batch(packed):
    generator = np.random.default_rng(7)
    ids = {
        f"{side}_ids": generator.integers(1, V_TARGET, (B, n)).astype("int32")
        for side, n in (("source", S), ("target", T))
    }
    labels = generator.integers(1, V_TARGET, (B, T)).astype("int32")
    labels[1, 4:] = ids["target_ids"][1, 4:] = 0
    if packed:
        for side, n in (("source", S), ("target", T)):
            segments = np.repeat([[1] * 2 + [2] * (n - 2)], B, axis=0)
            segments[ids[f"{side}_ids"] == 0] = 0
            ids[f"{side}_segments"] = segments.astype("int32")
    return ids, labels


@functools.cache
def models(tie_embeddings, packed):
    model = fresh(tie_embeddings, True, num_layers=1)
    whole = packed_model(model) if packed else model
    return model, whole, LossModel(model, packed, label_smoothing=0.1)


def tensors(inputs):
    return {name: ops.convert_to_tensor(x) for name, x in inputs.items()}


def added_loss(network, inputs):
    """Return the loss that a call adds; Keras on JAX would not keep it."""
    found = []
    with mock.patch.object(
        LossModel, "add_loss", lambda self, loss: found.append(loss)
    ):
        network(inputs, training=False)
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
def test_its_gradients_are_those_of_the_loss_of_all_logits(kind):
    _, whole, chunked = models(*kind)
    inputs, labels = batch(kind[1])
    chunked_inputs, _ = with_labels(inputs, labels)
    variables = whole.trainable_variables
    assert {id(v) for v in chunked.trainable_variables} == set(
        map(id, variables)
    )
    _, expected = gradients(
        lambda: SmoothedCrossEntropy(0.1)(
            labels, whole(tensors(inputs), training=False)
        ),
        variables=variables,
    )
    _, found = gradients(
        lambda: added_loss(chunked, tensors(chunked_inputs)),
        variables=variables,
    )
    for variable, one, other in zip(variables, found, expected, strict=True):
        assert np.abs(other).max() > 1e-4, variable.path
        np.testing.assert_allclose(one, other, atol=1e-5)


def trained(network, metrics, data, **arguments):
    network.compile(
        keras.optimizers.Adam(0.01), metrics=metrics, **arguments,
        # Compiled trainings are elsewhere. JAX compiles each operation alone.
        run_eagerly=keras.backend.backend() == "tensorflow",
    )  # fmt: skip
    # Inputs that are not arrays of one length are not Keras's own to cut up.
    history = [network.train_on_batch(*data, return_dict=True)
               for _ in range(3)]  # fmt: skip
    return history, [ops.convert_to_numpy(v) for v in network.variables]


@pytest.mark.parametrize("weighted", [False, True])
def test_three_updates_are_those_of_a_model_with_logits(weighted):
    inputs, labels = batch(packed=False)
    data = [inputs, labels]
    reduction = "token_mean"
    if weighted:
        weights = np.random.default_rng(1).uniform(0.1, 0.3, labels.shape)
        data.append(weights.astype("float32"))
        reduction = "sum"
    model = fresh("decoder", True, num_layers=1, **NO_DROPOUT)
    expected, _ = trained(
        model,
        [TokenAccuracy(), Perplexity()],
        data,
        loss=SmoothedCrossEntropy(0.1, reduction=reduction),
    )
    other = fresh("decoder", True, num_layers=1, **NO_DROPOUT)
    network = LossModel(other, label_smoothing=0.1, reduction=reduction)
    found, _ = trained(
        network, [ChunkedAccuracy(), ChunkedPerplexity()], with_labels(*data)
    )
    for logs, wanted in zip(found, expected, strict=True):
        assert logs == pytest.approx(wanted, rel=1e-4)
    for one, wanted in zip(other.weights, model.weights, strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-4, err_msg=one.path)


def test_it_evaluates_what_the_metrics_of_logits_say():
    model, _, network = models("decoder", False)
    inputs, labels = batch(packed=False)
    network.compile(metrics=[ChunkedAccuracy(), ChunkedPerplexity()])
    found = network.test_on_batch(
        *with_labels(inputs, labels), return_dict=True
    )
    logits = model(tensors(inputs))
    for metric in (TokenAccuracy(), Perplexity()):
        metric.update_state(labels, logits)
        assert found[metric.name] == pytest.approx(float(metric.result()))
    loss = SmoothedCrossEntropy(0.1)(labels, logits)
    assert found["loss"] == pytest.approx(float(loss))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_weights_keep_their_digits_in_sixteen_bits(policy):
    model = fresh("all", True, num_layers=1, dtype=policy)
    network = LossModel(model, reduction="sum")
    inputs, labels = batch(packed=False)
    weights = np.full(labels.shape, 1e-6, "float32")
    chunked_inputs, *_ = with_labels(inputs, labels, weights)
    found = float(added_loss(network, tensors(chunked_inputs)))
    logits = ops.cast(model(tensors(inputs)), "float32")
    expected = SmoothedCrossEntropy(reduction="sum")(labels, logits, weights)
    assert found == pytest.approx(float(expected), rel=2e-3)


def test_an_unknown_reduction_is_refused():
    model, _, _ = models("decoder", False)
    with pytest.raises(ValueError, match="token_mean"):
        LossModel(model, reduction="mean")


def test_it_is_made_again_from_its_config():
    model = fresh("all", True, num_layers=1)
    network = LossModel(model, True, 0.2, "sum", name="mine")
    again = LossModel.from_config(network.get_config())
    assert again.get_config() == network.get_config()
    assert again.body.input.keys() == network.body.input.keys()

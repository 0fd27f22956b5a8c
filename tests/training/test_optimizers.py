"""The optimizers, against torch and by hand, with repeated ids."""

import keras
import numpy as np
import pytest
import torch
from keras import ops

from keras_tfm.layers.embedding.token_embedding import TokenEmbedding
from keras_tfm.training.optimizers import make_optimizer

V, E, B, T = 7, 5, 3, 11


class Tied(keras.Model):
    """An embedding, a norm with a bias, and the same table as a softmax."""

    def __init__(self):
        super().__init__()
        self.embed = TokenEmbedding(V, E, scale=False, pad_id=None)
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5)

    def call(self, ids):
        return self.embed(self.norm(self.embed(ids)), reverse=True)


def made():
    model = Tied()
    model(np.zeros((B, T), "int32"))
    generator = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(generator.normal(size=variable.shape))
    return model


def batches(number):
    generator = np.random.default_rng(2)
    # Few ids, so that each occurs many times in a batch.
    return generator.integers(0, 4, (number, 2, B, T)).astype("int32")


def keras_weights(name, steps, **arguments):
    model = made()
    before = [np.array(v) for v in model.trainable_variables]
    model.compile(
        make_optimizer(name, 0.05, model.trainable_variables, **arguments),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=True,
    )
    for ids, labels in batches(steps):
        model.train_on_batch(ids, labels)
    names = [v.path.rpartition("/")[2] for v in model.trainable_variables]
    after = [np.array(v) for v in model.trainable_variables]
    return (
        dict(zip(names, before, strict=True)),
        dict(zip(names, after, strict=True)),
    )


def torch_weights(before, steps, kind, clip_norm=None, **arguments):
    table, gamma, beta = (
        torch.tensor(before[name], requires_grad=True)
        for name in ("embeddings", "gamma", "beta")
    )
    decay = arguments.pop("weight_decay", 0.0)
    groups = [
        {"params": [table], "weight_decay": decay},
        {"params": [gamma, beta], "weight_decay": 0.0},
    ]
    optimizer = kind(groups, lr=0.05, betas=(0.9, 0.98), eps=1e-9)
    for ids, labels in batches(steps):
        x = table[torch.tensor(ids, dtype=torch.long)]
        x = torch.nn.functional.layer_norm(x, (E,), gamma, beta, 1e-5)
        loss = torch.nn.functional.cross_entropy(
            (x @ table.T).reshape(-1, V),
            torch.tensor(labels, dtype=torch.long).reshape(-1),
        )
        optimizer.zero_grad()
        loss.backward()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_([table, gamma, beta], clip_norm)
        optimizer.step()
    return {
        name: tensor.detach().numpy()
        for name, tensor in zip(
            ("embeddings", "gamma", "beta"), (table, gamma, beta), strict=True
        )
    }


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("adam", {}),
        ("adam", {"clip_norm": 0.3}),
        ("adamw", {"weight_decay": 0.1}),
    ],
)
def test_twenty_updates_are_those_of_torch(name, arguments):
    before, found = keras_weights(name, 20, **arguments)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    expected = torch_weights(before, 20, kind, **arguments)
    for weight, value in expected.items():
        assert np.abs(value - before[weight]).max() > 0.01
        np.testing.assert_allclose(
            found[weight], value, atol=2e-4, err_msg=weight
        )


def test_weight_decay_leaves_norms_and_biases_alone():
    layer = keras.layers.Dense(3)
    layer.build((None, 5))
    kernel, bias = layer.trainable_variables
    kernel.assign(np.ones((5, 3)))
    bias.assign(np.ones(3))
    for name in ("adamw", "muon"):
        optimizer = make_optimizer(
            name, 0.5, layer.trainable_variables, weight_decay=0.1
        )
        assert optimizer._use_weight_decay(kernel)
        assert not optimizer._use_weight_decay(bias)


def test_muon_orthogonalizes_matrices_and_leaves_tables_to_adam():
    model = keras.Sequential(
        [
            keras.Input((T,), dtype="int32"),
            TokenEmbedding(V, E, pad_id=None, name="token_embedding"),
            keras.layers.Dense(E, use_bias=False, name="mixer"),
            keras.layers.Dense(V, name="vocabulary_projection"),
        ]
    )
    optimizer = make_optimizer("muon", 0.01, model.trainable_variables)
    kinds = {
        v.path.partition("/")[2]: optimizer._should_use_adamw(v)
        for v in model.trainable_variables
    }
    assert kinds == {
        "token_embedding/embeddings": True,
        "mixer/kernel": False,
        "vocabulary_projection/kernel": True,
        "vocabulary_projection/bias": True,
    }
    kernel = model.get_layer("mixer").kernel
    before = ops.convert_to_numpy(kernel.value)
    gradients = [
        ops.convert_to_tensor(
            np.random.default_rng(0).normal(size=v.shape).astype("float32")
        )
        for v in model.trainable_variables
    ]
    optimizer.apply(gradients)
    update = before - ops.convert_to_numpy(kernel.value)
    singular = np.linalg.svd(update, compute_uv=False)
    # About equal, of the size of Adam's: 0.2 of sqrt(5) times the rate.
    assert singular.min() > 0.5 * singular.max()
    assert singular.max() == pytest.approx(0.01 * 0.2 * 5**0.5, rel=0.3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "sgd"}, "Received: optimizer='sgd'"),
        ({"name": "adam", "weight_decay": 0.1}, 'Use optimizer="adamw"'),
        ({"name": "adam", "clip_norm": 0}, "Received: clip_norm=0"),
        (
            {"name": "adam", "accumulation_steps": 0},
            "Received: accumulation_steps=0",
        ),
        ({"name": "adam", "ema_momentum": 1.0}, "Received: ema_momentum=1.0"),
    ],
)
def test_names_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_optimizer(learning_rate=0.1, variables=[], **arguments)

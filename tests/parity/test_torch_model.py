"""The whole Transformer against one assembled from torch's modules."""

import keras
import numpy as np
import pytest
import torch
from backend_functions import gradients
from parity import torch_weights

from keras_tfm.layers import TokenEmbedding
from keras_tfm.models import Transformer
from keras_tfm.training import SmoothedCrossEntropy

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

B, T, S, H, D, F, V = 3, 5, 7, 2, 6, 13, 17
E = H * D
SIZES = {
    "num_layers": 2,
    "hidden_dim": E,
    "intermediate_dim": F,
    "num_heads": H,
    "dropout": 0.0,
    "layer_norm_epsilon": 1e-5,
    "use_bias": True,
}


class TorchTransformer(torch.nn.Module):
    """Scaled embeddings, sinusoids, torch.nn.Transformer, a tied softmax."""

    def __init__(self, normalize_first, tie_embeddings):
        super().__init__()
        self.source_embedding = torch.nn.Embedding(V, E)
        self.target_embedding = self.source_embedding
        if tie_embeddings != "all":
            self.target_embedding = torch.nn.Embedding(V, E)
        self.project = None
        if tie_embeddings is None:
            self.project = torch.nn.Linear(E, V, bias=False)
        self.transformer = torch.nn.Transformer(
            E,
            H,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=F,
            dropout=0.0,
            layer_norm_eps=1e-5,
            batch_first=True,
            norm_first=normalize_first,
        )
        if not normalize_first:
            self.transformer.encoder.norm = None
            self.transformer.decoder.norm = None

    def positions(self, length):
        """Tensor2Tensor's: [sin | cos] of p / 10000^(i / (n - 1))."""
        pairs = E // 2
        rates = 10000.0 ** (-torch.arange(pairs) / (pairs - 1))
        angles = torch.arange(length)[:, None] * rates
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

    def forward(self, source_ids, target_ids):
        source = self.source_embedding(source_ids) * E**0.5
        target = self.target_embedding(target_ids) * E**0.5
        length = target_ids.shape[1]
        x = self.transformer(
            source + self.positions(source_ids.shape[1]),
            target + self.positions(length),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=source_ids == 0,
            tgt_key_padding_mask=target_ids == 0,
            memory_key_padding_mask=source_ids == 0,
        )
        if self.project is not None:
            return self.project(x)
        return x @ self.target_embedding.weight.T


def links_between(model, module):
    links = torch_weights.encoder(model.encoder, module.transformer.encoder)
    links += torch_weights.decoder(model.decoder, module.transformer.decoder)
    tables = {
        id(layer): torch_weights.Link(layer.embeddings, its.weight)
        for layer, its in [
            (model.source_embedding, module.source_embedding),
            (model.target_embedding, module.target_embedding),
        ]
    }
    links += tables.values()
    if model.project is not None:
        links += torch_weights.dense(model.project, module.project.weight, None)
    return links


def batch():
    generator = np.random.default_rng(8)
    source = generator.integers(3, V, (B, S))
    source *= np.arange(S) < np.array([[7], [3], [1]])
    labels = generator.integers(3, V, (B, T))
    labels *= np.arange(T) < np.array([[2], [5], [3]])
    labels[0, 1] = labels[1, 0]  # A token that occurs twice.
    target = np.concatenate([np.ones((B, 1), int), labels[:, :-1]], axis=1)
    target *= labels != 0
    return source, target, labels


@pytest.mark.parametrize("tie_embeddings", ["all", "decoder", None])
@pytest.mark.parametrize("normalize_first", [True, False])
def test_logits_loss_and_gradients_are_those_of_torch(
    tie_embeddings, normalize_first
):
    module = torch_weights.shake(
        TorchTransformer(normalize_first, tie_embeddings)
    )
    model = Transformer(
        V,
        normalize_first=normalize_first,
        tie_embeddings=tie_embeddings,
        **SIZES,
    )
    links = links_between(model, module)
    torch_weights.copy(links, model)
    source, target, labels = batch()

    expected = module(torch.tensor(source), torch.tensor(target))
    loss = torch.nn.functional.cross_entropy(
        expected.reshape(-1, V),
        torch.tensor(labels).reshape(-1),
        ignore_index=0,
        label_smoothing=0.1,
    )
    loss.backward()

    inputs = {"source_ids": source, "target_ids": target}
    found = keras.ops.convert_to_numpy(model(inputs))
    real = labels != 0
    np.testing.assert_allclose(
        found[real], expected.detach().numpy()[real], atol=1e-5
    )
    our_loss = SmoothedCrossEntropy(0.1)
    assert float(our_loss(labels, model(inputs))) == pytest.approx(
        loss.item(), abs=1e-5
    )
    _, by_variable = gradients(
        lambda: our_loss(labels, model(inputs)),
        variables=[link.variable for link in links],
    )
    for gradient, link in zip(by_variable, links, strict=True):
        np.testing.assert_allclose(
            gradient, link.gradient(), atol=1e-5, err_msg=link.variable.path
        )


def test_after_twenty_steps_of_adam_the_weights_are_those_of_torch():
    # Tokens that occur several times in a batch: an optimizer that takes each
    # occurrence for an update of its own ends elsewhere.
    generator = np.random.default_rng(2)
    ids = generator.integers(0, 4, (B, T))
    labels = generator.integers(1, V, (B, T))
    module = torch.nn.Sequential(
        torch.nn.Embedding(V, E), torch.nn.Linear(E, V)
    )
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            TokenEmbedding(V, E, scale=False, pad_id=None),
            keras.layers.Dense(V),
        ]
    )
    embedding, project = model.layers
    links = [
        torch_weights.Link(embedding.embeddings, module[0].weight),
        *torch_weights.dense(project, module[1].weight, module[1].bias),
    ]
    torch_weights.copy(links, model)
    start = embedding.embeddings.numpy()
    model.compile(
        keras.optimizers.Adam(0.01, epsilon=1e-12), SmoothedCrossEntropy()
    )
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, eps=1e-12)
    for _ in range(20):
        model.train_on_batch(ids, labels)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(
            module(torch.tensor(ids)).reshape(-1, V),
            torch.tensor(labels).reshape(-1),
        ).backward()
        optimizer.step()
    for link in links:
        np.testing.assert_allclose(
            link.variable.numpy(), link.value(), atol=1e-4
        )
    moved = np.abs(embedding.embeddings.numpy() - start).max(axis=1)
    assert (moved[:4] > 0.01).all()
    assert (moved[4:] == 0.0).all()

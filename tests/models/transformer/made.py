"""Small Transformers with weights that hide no mistake, and their inputs."""

import functools

import keras
import numpy as np
from backend_functions import swift

from keras_tfm.models import Transformer

# Distinct primes where possible: batch, target and source length.
B, T, S = 3, 5, 7
V_SOURCE, V_TARGET = 13, 11
SIZES = {
    "num_layers": 2,
    "hidden_dim": 6,
    "intermediate_dim": 17,
    "num_heads": 2,
    "dropout": 0.3,
    "attention_dropout": 0.2,
    "activation_dropout": 0.1,
}
# Every way to tie, and both places of the norm.
KINDS = [("all", True), ("all", False), ("decoder", False), (None, True)]


def shaken(model, seed=0):
    """Redraw every weight, so that no zero or one hides a mistake."""
    generator = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        noise = 0.4 * generator.normal(size=weight.shape)
        weight.assign((1.0 if "gamma" in weight.path else 0.0) + noise)
    return model


def fresh(tie_embeddings="decoder", normalize_first=True, **kwargs):
    sizes = {
        "tie_embeddings": tie_embeddings,
        "normalize_first": normalize_first,
        "target_vocabulary_size": V_TARGET,
        **SIZES,
        **kwargs,
    }
    source_size = V_TARGET if tie_embeddings == "all" else V_SOURCE
    return shaken(Transformer(source_size, **sizes))


made = functools.cache(fresh)


def batch(source_lengths=(7, 4, 1), target_lengths=(2, 5, 3), seed=8):
    """Draw ids without padding inside, and cut them to their lengths."""
    generator = np.random.default_rng(seed)
    source = generator.integers(1, V_TARGET, (B, S), dtype="int32")
    target = generator.integers(1, V_TARGET, (B, T), dtype="int32")
    source *= np.arange(S) < np.array(source_lengths)[:, None]
    target *= np.arange(T) < np.array(target_lengths)[:, None]
    return source, target


def logits(model, source, target):
    function = swift(
        lambda source, target: model(
            {"source_ids": source, "target_ids": target}
        )
    )
    return keras.ops.convert_to_numpy(function(source, target))

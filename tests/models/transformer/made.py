"""Small Transformers with weights that hide no mistake, and their inputs."""

import functools

import keras
import numpy as np
from backend_functions import compiled

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
NAMES = ("source_ids", "target_ids")
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
    """Return the logits of a pass without dropout, as a NumPy array."""
    inputs = [keras.ops.convert_to_tensor(x, "int32") for x in (source, target)]
    if keras.backend.backend() == "jax":
        # Op by op JAX is slow. The weights are arguments: tests change them.
        trained = [weight.value for weight in model.trainable_variables]
        frozen = [weight.value for weight in model.non_trainable_variables]
        found = compiled_pass(model)(trained, frozen, *inputs)
    else:
        found = model(dict(zip(NAMES, inputs, strict=True)))
    return keras.ops.convert_to_numpy(found)


@functools.cache
def compiled_pass(model):
    def run(trained, frozen, *inputs):
        inputs = dict(zip(NAMES, inputs, strict=True))
        return model.stateless_call(trained, frozen, inputs)[0]

    return compiled(run)

"""Published sizes of the Transformer, as plain data.

Tensor2Tensor's sets have no bias in the attention and share one table among
source, target and softmax. Its first version (`_v1`) is the paper's: post-norm,
dropout only on each part's output. The current one (`_v3`) is pre-norm and
drops attention weights and intermediate values too.
"""

from keras_tfm.checks import check_choice

_TENSOR2TENSOR = {
    "use_bias": False,
    "layer_norm_epsilon": 1e-6,
    "tie_embeddings": "all",
    "position_layout": "concat",
    "position_denominator": "tensor2tensor",
}
_V1 = {**_TENSOR2TENSOR, "normalize_first": False}
_V3 = {
    **_TENSOR2TENSOR,
    "normalize_first": True,
    "attention_dropout": 0.1,
    "activation_dropout": 0.1,
}
_BASE = {
    "num_layers": 6,
    "hidden_dim": 512,
    "intermediate_dim": 2048,
    "num_heads": 8,
    "dropout": 0.1,
}
_BIG = {
    "num_layers": 6,
    "hidden_dim": 1024,
    "intermediate_dim": 4096,
    "num_heads": 16,
    "dropout": 0.3,
}
_TINY = {
    "num_layers": 2,
    "hidden_dim": 128,
    "intermediate_dim": 512,
    "num_heads": 4,
    "dropout": 0.1,
}
_PAPER = {
    **_V1,
    "position_layout": "interleaved",
    "position_denominator": "paper",
}

PRESETS = {
    # Tensor2Tensor, transformer.py.
    "transformer_base": {**_BASE, **_V3},
    "transformer_base_v1": {**_BASE, **_V1},
    "transformer_base_v3": {**_BASE, **_V3},
    "transformer_big": {**_BIG, **_V3},
    "transformer_big_v1": {**_BIG, **_V1},
    "transformer_big_v3": {**_BIG, **_V3},
    "transformer_tiny": {**_TINY, **_V3},
    "transformer_tiny_v1": {**_TINY, **_V1},
    "transformer_tiny_v3": {**_TINY, **_V3},
    # Vaswani et al., 2017, table 3; the layout of its section 3.5.
    "transformer_paper_base": {**_BASE, **_PAPER},
    "transformer_paper_big": {**_BIG, **_PAPER},
    # Wu et al., ACL 2021: Multi30k, a joint vocabulary of 9,712.
    "transformer_tiny_multi30k": {
        "num_layers": 4,
        "hidden_dim": 128,
        "intermediate_dim": 256,
        "num_heads": 4,
        "dropout": 0.3,
        "normalize_first": False,
        "use_bias": True,
        "layer_norm_epsilon": 1e-5,
        "tie_embeddings": "all",
        "position_layout": "concat",
        "position_denominator": "tensor2tensor",
    },
}


def preset_arguments(name):
    """Return the constructor arguments of a preset, as a new dictionary.

    Args:
        name: String, a key of `PRESETS`.

    Raises:
        ValueError: If there is no preset of that name.

    Example:
        >>> preset_arguments("transformer_base")["num_heads"]
        8
    """
    return dict(PRESETS[check_choice("preset", name, sorted(PRESETS))])

"""The Transformer's formulas in NumPy, for layers to be compared with.

Written from the papers, one head and one sum at a time.
"""

import numpy as np


def attention(query, key, value, allowed=None):
    """One head: `(T, D), (S, D), (S, D)` to the output and the weights."""
    weights = np.zeros((len(query), len(key)))
    for t, one_query in enumerate(query):
        seen = [s for s in range(len(key)) if allowed is None or allowed[t, s]]
        if seen:
            scores = key[seen] @ one_query / np.sqrt(len(one_query))
            powers = np.exp(scores - scores.max())
            weights[t, seen] = powers / powers.sum()
    return weights @ value, weights


def multi_head_attention(query, key, value, num_heads, allowed=None):
    """All heads: `(B, T, H * D)` to `(B, T, H * D)` and `(B, H, T, S)`."""
    outputs, weights = [], []
    for b in range(len(query)):
        heads = [
            attention(
                head(query[b], h, num_heads),
                head(key[b], h, num_heads),
                head(value[b], h, num_heads),
                None if allowed is None else allowed[b, h],
            )
            for h in range(num_heads)
        ]
        outputs.append(np.concatenate([out for out, _ in heads], axis=-1))
        weights.append([w for _, w in heads])
    return np.array(outputs), np.array(weights)


def head(sequence, index, num_heads):
    """Cut one head out of the channels."""
    size = sequence.shape[-1] // num_heads
    return sequence[:, index * size : (index + 1) * size]


def layer_norm(x, gamma, beta, epsilon=1e-6):
    """Normalise the channels of each position."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


def all_masks(batch, heads, target, source, **masks):
    """AND padding, attention and causal masks into `(B, H, T, S)`.

    Args:
        batch: Integer B.
        heads: Integer H.
        target: Integer T.
        source: Integer S.
        **masks: `padding (B, S)`, `attention` of rank 2 `(T, S)`, 3 `(B, T, S)`
            or 4, `causal` a boolean; bottom-right where T and S differ.

    Returns:
        Boolean array `(B, H, T, S)`.
    """
    allowed = np.ones((batch, heads, target, source), bool)
    if masks.get("padding") is not None:
        allowed &= masks["padding"][:, None, None, :]
    attention_mask = masks.get("attention")
    if attention_mask is not None:
        rank = attention_mask.ndim
        if rank == 2:
            attention_mask = attention_mask[None, None]
        elif rank == 3:
            attention_mask = attention_mask[:, None]
        allowed &= attention_mask
    if masks.get("causal"):
        for t in range(target):
            allowed[:, :, t, max(0, source - target + t + 1) :] = False
    return allowed

"""Step functions made of random trees, and the same searches in plain Python.

A tree has a node for every history: the children of node n are n * V + 1 to
n * V + V. Each node holds the logits of what comes next, so that whoever mixes
up two histories is found out.
"""

import functools

import numpy as np
from backend_functions import swift
from keras import ops

# The vocabulary: 0 pads, 1 starts, 2 ends.
V = 5
PAD, START, END = 0, 1, 2
# Of the cross-attention: heads and source length.
H, S = 3, 7


def array(tensor):
    return ops.convert_to_numpy(tensor)


def trees(rows, length, seed=0):
    """Draw logits `(rows, nodes, V)`; every third row likes to end."""
    generator = np.random.default_rng(seed)
    nodes = sum(V**depth for depth in range(length))
    logits = 2 * generator.normal(size=(rows, nodes, V))
    logits[::3, :, END] += 2.0
    return logits.astype("float32")


def attention_trees(rows, length, seed=1):
    """Draw cross-attention weights `(rows, nodes, H * S)`."""
    generator = np.random.default_rng(seed)
    nodes = sum(V**depth for depth in range(length))
    weights = generator.dirichlet([0.3] * S, (rows, nodes, H))
    return weights.reshape(rows, nodes, H * S).astype("float32")


def first_cache(logits, length, beams, attention=None):
    cache = {
        "tokens": np.zeros((len(logits), length * beams), "int32"),
        "logits": logits,
    }
    if attention is not None:
        cache["cross"] = attention
    return cache


def step(last, cache, index, ancestors=None, return_attention_scores=False):
    """Find each beam's history through its ancestors; answer with its node."""
    rows, beams = last.shape
    length = cache["tokens"].shape[1] // beams
    if ancestors is None:
        ancestors = np.zeros((rows, 1, length), "int32")
    tokens = ops.slice_update(cache["tokens"], (0, index * beams), last)
    # The oldest token is the start, the same for all.
    node = ops.zeros((rows, beams), "int32")
    for time in range(1, length):
        place = time * beams + ancestors[:, :, time]
        token = ops.take_along_axis(tokens, place, axis=1)
        node = ops.where(time <= index, node * V + token + 1, node)
    cache = {**cache, "tokens": tokens}
    logits = at_nodes(cache["logits"], node)
    if not return_attention_scores:
        return logits, cache
    cross = ops.reshape(at_nodes(cache["cross"], node), (rows, beams, H, S))
    own = ops.cast(
        ops.expand_dims(ancestors, -1) == ops.arange(beams), "float32"
    )
    each = 1.0 / (ops.cast(index, "float32") + 1.0)
    share = ops.where(ops.arange(length) <= index, each, 0.0)
    own = own * ops.expand_dims(share, -1)
    own = ops.reshape(own, (rows, 1, beams, length * beams))
    weights = {
        "decoder": (own,),
        "cross": (ops.transpose(cross, (0, 2, 1, 3)),),
    }
    return logits, cache, weights


def at_nodes(table, node):
    rows, nodes, width = table.shape
    place = node + ops.expand_dims(ops.arange(rows), 1) * nodes
    return ops.take(ops.reshape(table, (rows * nodes, width)), place, axis=0)


@functools.cache
def program(generator):
    def run(cache, active, row_arguments):
        return generator.n_best(step, cache, active, **row_arguments)

    return swift(run)


def n_best(generator, logits, attention=None, active=None, **row_arguments):
    """Run a generator on trees; return NumPy arrays."""
    if active is None:
        active = np.ones(len(logits), bool)
    length, beams = generator.max_length, generator.num_beams
    cache = first_cache(logits, length, beams, attention)
    return [
        array(found)
        for found in program(generator)(
            {name: ops.convert_to_tensor(x) for name, x in cache.items()},
            ops.convert_to_tensor(active),
            {k: ops.convert_to_tensor(x) for k, x in row_arguments.items()},
        )
    ]


def log_probabilities(logits):
    logits = np.asarray(logits, "float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def allowed_tokens(written, min_length):
    """Return what may follow, in the order of the ids."""
    ending = len(written) + 1 >= min_length
    return [t for t in range(V) if t != PAD and (t != END or ending)]


def node_of(ids):
    return functools.reduce(lambda node, token: node * V + token + 1, ids, 0)


def total(tree, ids):
    """Return the log-probability of a sequence: a tree of them, and ids."""
    return sum(tree[node_of(ids[:i]), token] for i, token in enumerate(ids))


def every_sequence(limit, min_length=1, written=()):
    """Yield all sequences that end, or are as long as `limit`."""
    for token in allowed_tokens(written, min_length):
        ids = (*written, token)
        if token == END or len(ids) == limit:
            yield ids
        else:
            yield from every_sequence(limit, min_length, ids)


def coverage(attention, ids, source_mask):
    """Wu et al.'s sum, from a tree of weights, without its factor."""
    seen = sum(
        attention[node_of(ids[:i])].reshape(H, S).mean(0)
        for i in range(len(ids))
    )
    return np.log(np.minimum(seen, 1.0))[source_mask].sum()


def plain_beam_search(
    tree, beams, limit, value, min_length=1, allow=lambda ids, token: True
):
    """Search one tree of log-probabilities, never stopping early.

    Args:
        tree: Array `(nodes, V)`.
        beams: Integer K.
        limit: Integer, the most tokens.
        value: Function of the log-probability and the ids of a finished
            sequence: what hypotheses are compared by.
        min_length: Integer, the fewest tokens.
        allow: Function of what is written and a token.

    Returns:
        At most K pairs of a value and ids, best first.
    """
    alive, finished = [(0.0, ())], []
    for _ in range(limit):
        candidates = [
            (score + tree[node_of(ids), token], (*ids, token))
            for score, ids in alive
            for token in allowed_tokens(ids, min_length)
            if allow(ids, token)
        ]
        # Sorting is stable: of equals the first beam, then the lowest id.
        candidates.sort(key=lambda pair: -pair[0])
        alive = []
        for rank, (score, ids) in enumerate(candidates[: 2 * beams]):
            if ids[-1] != END and len(ids) < limit:
                alive.append((score, ids))
            elif rank < beams:
                finished.append((value(score, ids), ids))
        alive = alive[:beams]
    finished.sort(key=lambda pair: -pair[0])
    return finished[:beams]


def unpadded(ids):
    return tuple(int(token) for token in ids if token != PAD)

"""Self-attention worked out by hand, step by step, in NumPy.

Three tokens, four numbers each. Every step of the attention is a line of NumPy
here, and at the end of each part the layer of keras_tfm gets the same input and
must give the same output.

    python examples/1_attention_by_hand.py

It takes no time; `--smoke`, which every example has, changes nothing here.
"""

import argparse

import keras
import numpy as np

from keras_tfm.layers import MultiHeadSelfAttention

TOKENS = ["the", "cat", "sleeps"]
WIDTH = 4

np.set_printoptions(precision=3, suppress=True)


def softmax(scores):
    """Turn each row of scores into shares that sum to 1."""
    # The highest score is taken away first, so that no exponential overflows.
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def show_weights(title, weights):
    """Print attention weights: who looks (rows) at whom (columns)."""
    print(f"\n{title}")
    print(f"{'':>10}" + "".join(f"{token:>9}" for token in TOKENS))
    for token, row in zip(TOKENS, weights, strict=True):
        print(f"{token:>10}" + "".join(f"{weight:9.3f}" for weight in row))


def check_same(title, by_hand, layer_output):
    """Compare what we worked out with what the layer gives."""
    layer_output = keras.ops.convert_to_numpy(layer_output)
    difference = float(np.abs(by_hand - layer_output).max())
    print(f"\n{title}: by hand and by the layer differ by at most", end=" ")
    print(f"{difference:.1e}")
    if difference > 1e-5:
        raise SystemExit("They should be the same!")


def one_head(x):
    """Queries, keys, values; scores; weights; a weighted mean."""
    # The layer makes its weights when it sees its first input. One matrix
    # product makes queries, keys and values at once; we cut it in three.
    layer = MultiHeadSelfAttention(num_heads=1, use_bias=False)
    layer(x[None])
    joined = keras.ops.convert_to_numpy(layer.query_key_value.kernel)
    to_query, to_key, to_value = np.split(joined, 3, axis=1)
    to_output = keras.ops.convert_to_numpy(layer.attention_output.kernel)

    # What each token asks for, what it offers, and what it has to say.
    query, key, value = x @ to_query, x @ to_key, x @ to_value

    # How well does each question fit each offer? A dot product for each pair,
    # divided by the square root of the width so that it does not grow with it.
    scores = query @ key.T / np.sqrt(WIDTH)
    print("\nScores, one row a query:")
    print(scores)

    weights = softmax(scores)
    show_weights("Weights, each row sums to 1:", weights)

    # Each token takes the values of all tokens, in these shares.
    output = weights @ value @ to_output
    check_same("One head", output, layer(x[None])[0])
    return layer, scores, value, to_output


def masks(x, layer, scores, value, to_output):
    """Hide some keys: a score of minus infinity is a weight of 0."""
    # Causal: a token sees itself and what came before it. A decoder needs this,
    # for what comes later is what it has to guess.
    past = np.tril(np.ones((3, 3), bool))
    weights = softmax(np.where(past, scores, -np.inf))
    show_weights("Causal: no one sees the future.", weights)
    check_same(
        "Causal mask",
        weights @ value @ to_output,
        layer(x[None], use_causal_mask=True)[0],
    )

    # Padding: say that the third token is only there to fill up the row.
    # True means "is a real token", here and everywhere in keras_tfm.
    real = np.array([True, True, False])
    weights = softmax(np.where(real[None, :], scores, -np.inf))
    show_weights("Padding: no one sees the third token.", weights)
    output = layer(x[None], padding_mask=real[None])[0]
    # Row 3 is the output at the padding itself. Nobody reads it.
    check_same("Padding mask", (weights @ value @ to_output)[:2], output[:2])

    # So whatever stands at the padding, the real tokens do not notice.
    nonsense = x.copy()
    nonsense[2] = np.nan
    output = layer(nonsense[None], padding_mask=real[None])[0]
    check_same(
        "NaN at the padding", (weights @ value @ to_output)[:2], output[:2]
    )


def two_heads(x):
    """Several heads: the same again in slices, each with a view of its own."""
    layer = MultiHeadSelfAttention(num_heads=2, use_bias=False)
    output, from_layer = layer(x[None], return_attention_scores=True)
    joined = keras.ops.convert_to_numpy(layer.query_key_value.kernel)
    to_query, to_key, to_value = np.split(joined, 3, axis=1)
    to_output = keras.ops.convert_to_numpy(layer.attention_output.kernel)

    size = WIDTH // 2  # Two heads share the width.
    heads = []
    for number in range(2):
        columns = slice(number * size, (number + 1) * size)
        query = x @ to_query[:, columns]
        key = x @ to_key[:, columns]
        value = x @ to_value[:, columns]
        weights = softmax(query @ key.T / np.sqrt(size))
        show_weights(f"Head {number + 1} of 2:", weights)
        check_same(
            f"Weights of head {number + 1}", weights, from_layer[0, number]
        )
        heads.append(weights @ value)

    # Side by side again, and one last matrix mixes what the heads found.
    by_hand = np.concatenate(heads, axis=-1) @ to_output
    check_same("Two heads", by_hand, output[0])


def order(x):
    """Attention knows no order: shuffle the tokens, and the result is shuffled.

    This is why a Transformer adds positions to its vectors.
    """
    layer = MultiHeadSelfAttention(num_heads=2, use_bias=False)
    shuffled = [2, 0, 1]
    straight = keras.ops.convert_to_numpy(layer(x[None])[0])
    check_same(
        "Shuffled input", straight[shuffled], layer(x[shuffled][None])[0]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="changes nothing")
    parser.parse_args()

    keras.utils.set_random_seed(7)
    x = np.random.default_rng(7).normal(size=(3, WIDTH)).astype("float32")
    print("Three tokens as vectors:")
    for token, vector in zip(TOKENS, x, strict=True):
        print(f"{token:>10} {vector}")

    layer, scores, value, to_output = one_head(x)
    masks(x, layer, scores, value, to_output)
    two_heads(x)
    order(x)


if __name__ == "__main__":
    main()

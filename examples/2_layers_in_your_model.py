"""The layers in a model of your own: a text classifier.

The texts are made up here: who is asked about comes first, then something is
said about two things, and `not` turns it round.

    song : the film was not dull but the song was bad        -> negative

A bag of words cannot know which word belongs to which: the answer needs
attention, and positions. The model is an ordinary functional Keras model.

    python examples/2_layers_in_your_model.py            (minutes)
    python examples/2_layers_in_your_model.py --smoke    (seconds)
"""

import argparse
import pathlib
import tempfile

import keras
import numpy as np

from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import PositionalEncoding
from keras_tfm.layers import TokenEmbedding

THINGS = ("film", "song", "book", "play", "game")
GOOD = ("good", "great", "fine", "lovely")
BAD = ("bad", "dull", "poor", "awful")
OTHERS = (":", "the", "was", "not", "really", "very", "but", "and")
# Id 0 is padding.
WORDS = ("<pad>", *THINGS, *GOOD, *BAD, *OTHERS)
LENGTH = 20


def make_text(rng):
    """Write one text, and say if it is positive about what it asks for."""
    things = rng.choice(THINGS, 2, replace=False)
    answers = []
    clauses = []
    for thing in things:
        good, negated = rng.random(2) < 0.5
        words = ["the", thing, "was"]
        words += ["not"] if negated else []
        words += [
            str(word) for word in ("really", "very") if rng.random() < 0.3
        ]
        words += [rng.choice(GOOD if good else BAD)]
        clauses.append(words)
        answers.append(good != negated)
    asked = rng.integers(2)
    text = [things[asked], ":", *clauses[0], rng.choice(["but", "and"])]
    return [*text, *clauses[1]], answers[asked]


def make_data(count, seed):
    """Return token ids `(count, LENGTH)`, padded with 0, and labels."""
    rng = np.random.default_rng(seed)
    ids = np.zeros((count, LENGTH), "int32")
    labels = np.zeros(count, "float32")
    for row in range(count):
        words, labels[row] = make_text(rng)
        ids[row, : len(words)] = [WORDS.index(word) for word in words]
    return ids, labels


def make_model():
    """Put the layers together, as with any others of Keras."""
    token_ids = keras.Input((None,), dtype="int32")
    # The embedding marks the padding. The layers after it pass the mark on, and
    # the pooling leaves out what is marked: nothing more is to be done.
    x = TokenEmbedding(vocabulary_size=len(WORDS), hidden_dim=32)(token_ids)
    x = PositionalEncoding()(x)
    x = EncoderBlock(num_heads=4, intermediate_dim=64, dropout=0.1)(x)
    x = EncoderBlock(num_heads=4, intermediate_dim=64, dropout=0.1)(x)
    x = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dense(1, activation="sigmoid")(x)
    return keras.Model(token_ids, x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="seconds")
    smoke = parser.parse_args().smoke

    keras.utils.set_random_seed(1)
    ids, labels = make_data(512 if smoke else 20_000, seed=1)
    test_ids, test_labels = make_data(128 if smoke else 2000, seed=2)
    for row in range(3):
        text = " ".join(WORDS[i] for i in ids[row] if i)
        print(f"{'positive' if labels[row] else 'negative'}   {text}")

    model = make_model()
    model.summary()

    # XLA compiles one program for each shape. All batches have the same here.
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss="binary_crossentropy",
        metrics=["accuracy"],
        jit_compile=True,
    )
    # Watch it learn in steps: half right is chance; three quarters is to know
    # what both things are, and not which one is asked for; then it sees it all.
    model.fit(ids, labels, batch_size=128, epochs=1 if smoke else 15, verbose=2)
    _, accuracy = model.evaluate(
        test_ids, test_labels, batch_size=128, verbose=0
    )
    print(f"\n{accuracy:.1%} right on texts it has not seen.")

    # Padding changes nothing: the same texts with ten more columns of it.
    answers = model(test_ids)
    padded = np.pad(test_ids, [(0, 0), (0, 10)])
    difference = np.abs(answers - model(padded)).max()
    print(f"With more padding the answers differ by at most {difference:.1e}.")

    # Saving: no `custom_objects`; `import keras_tfm` is all a loader needs.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "classifier.keras"
        model.save(path)
        loaded = keras.saving.load_model(path)
    difference = np.abs(answers - loaded(test_ids)).max()
    print(f"Saved and loaded, they differ by at most {difference:.1e}.")

    # And where it looks: the attention of the first block, for one text.
    embedding, position, block = model.layers[1:4]
    one = test_ids[:1]
    real = one != 0
    _, scores = block(
        position(embedding(one)),
        padding_mask=real,
        return_attention_scores=True,
    )
    scores = keras.ops.convert_to_numpy(scores)[0].mean(axis=0)
    words = [WORDS[i] for i in one[0][real[0]]]
    print("\nWhat each word looks at most, in the first block:")
    for word, row in zip(words, scores, strict=False):
        best = int(row.argmax())
        print(f"  {word:>8} -> {words[best]:<8} {row[best]:.2f}")


if __name__ == "__main__":
    main()

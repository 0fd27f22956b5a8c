"""A translator, from text to a served model.

German number words become English ones. German says the ones before the tens,
in one word, so the translator has to cut and to reorder:

    dreihundertzweiundvierzig -> three hundred and forty-two

    python examples/3_translator.py            (minutes)
    python examples/3_translator.py --smoke    (seconds; it learns little)
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import keras
import numpy as np

from keras_tfm.data import SentencePairs
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.translation import Translator

# fmt: off
GERMAN = (
    "null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht",
    "neun", "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn",
    "sechzehn", "siebzehn", "achtzehn", "neunzehn",
)
GERMAN_TENS = (
    "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig",
    "achtzig", "neunzig",
)
ENGLISH = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight",
    "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen",
    "sixteen", "seventeen", "eighteen", "nineteen",
)
ENGLISH_TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty",
    "ninety",
)
# fmt: on

# What a program without keras_tfm does with the SavedModel.
SERVING = """
import sys
import tensorflow as tf

model = tf.saved_model.load(sys.argv[1])
serve = model.signatures["serving_default"]
output = serve(text=tf.constant(sys.argv[2:]))
for text, score in zip(output["text"].numpy(), output["score"].numpy()):
    print(f"  {text.decode()}  (log-probability {score:.2f})")
"""


def german(number):
    """Spell a number from 0 to 9999.

    >>> german(342)
    'dreihundertzweiundvierzig'
    """
    if number >= 100:
        size, word = (1000, "tausend") if number >= 1000 else (100, "hundert")
        rest = german(number % size) if number % size else ""
        return GERMAN[number // size].removesuffix("s") + word + rest
    if number < 20:
        return GERMAN[number]
    ones = "ein" if number % 10 == 1 else GERMAN[number % 10]
    tens = GERMAN_TENS[number // 10 - 2]
    return f"{ones}und{tens}" if number % 10 else tens


def english(number):
    """Spell a number from 0 to 9999.

    >>> english(342)
    'three hundred and forty-two'
    """
    if number >= 1000:
        rest = number % 1000
        head = f"{english(number // 1000)} thousand"
        joint = " and " if rest < 100 else " "
        return head + (joint + english(rest) if rest else "")
    if number >= 100:
        head = f"{english(number // 100)} hundred"
        return head + (f" and {english(number % 100)}" if number % 100 else "")
    if number < 20:
        return ENGLISH[number]
    tens = ENGLISH_TENS[number // 10 - 2]
    return f"{tens}-{ENGLISH[number % 10]}" if number % 10 else tens


def make_pairs():
    """Return pairs to train on, and 500 that training never sees."""
    numbers = np.random.default_rng(1).permutation(10_000)
    train, test = (
        SentencePairs(
            sources=[german(number) for number in part],
            targets=[english(number) for number in part],
            name=name,
        )
        for part, name in ((numbers[500:], "train"), (numbers[:500], "test"))
    )
    return train, test


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="seconds")
    smoke = parser.parse_args().smoke

    train, test = make_pairs()
    for source, target in train.take(3):
        print(f"{source} -> {target}")

    # Tokenizers learnt from the pairs, and a new model that fits them. Single
    # characters will do here; for real text it is "bpe", the default.
    keras.utils.set_random_seed(1)
    translator = Translator.from_pairs(
        train,
        tokenizer="characters",
        joint=False,
        source_lengths=(48,),
        max_target_length=56,
        num_layers=1 if smoke else 2,
        hidden_dim=32 if smoke else 64,
        intermediate_dim=32 if smoke else 128,
        num_heads=4,
        dropout=0.0,
    )
    print(f"\n{translator.model.count_params():,} parameters")

    steps = 20 if smoke else 1200
    settings = TrainingSettings(
        tokens_per_batch=2048,
        max_shapes=1,  # XLA compiles the training once for each shape.
        peak=4e-3,
        warmup_steps=steps // 5,
        decay_steps=steps,
        label_smoothing=0.0,
    )
    batches = translator.batches(train, settings)
    print(batches.describe())
    logs = translator.fit(batches, settings, steps=steps)
    print(
        f"After {logs['steps']:,} steps: loss {logs['loss']:.3f}, "
        f"{logs['token_accuracy']:.1%} of the characters right"
    )

    test = test.take(8) if smoke else test
    (score,) = translator.evaluate(test, metric="exact")
    print(
        f"\n{score.value:.1f} % of {len(test)} numbers that it has not seen "
        "are right, letter by letter."
    )
    texts = list(test.sources[:5])
    for text, translation in zip(
        texts, translator.translate(texts), strict=True
    ):
        print(f"  {text} -> {translation}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # A folder with tokenizers, weights and settings, to go on with.
        translator.save(folder / "translator")
        loaded = Translator.load(folder / "translator")
        same = loaded.translate(texts) == translator.translate(texts)
        print(f"\nSaved and loaded, it says the same: {same}")

        # A SavedModel, to serve: strings in, strings out, TensorFlow alone.
        translator.export(folder / "saved_model")
        print("A new process that imports nothing but tensorflow says:")
        sys.stdout.flush()
        subprocess.run(
            [sys.executable, "-c", SERVING, folder / "saved_model", *texts],
            check=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )


if __name__ == "__main__":
    main()

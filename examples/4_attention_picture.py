"""What a translator looks at: its cross-attention as a picture.

Each row is a token that the model writes, each column one that it reads; the
darker a square, the more it looks there. One panel for each head of the last
decoder layer, and one for their mean.

    keras-tfm quickstart
    python examples/4_attention_picture.py

Where there is no trained translator in `--folder`, a small one learns dates
first. `--smoke` trains for seconds, which shows little, and writes its picture
to a temporary folder.
"""

import argparse
import io
import math
import pathlib
import tempfile

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from keras_tfm.data import SentencePairs
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.translation import Translator

FOLDER = pathlib.Path("runs/quickstart/model")
OUTPUT = pathlib.Path("docs/images/attention.png")
TEXT = "fi_FI|4. maaliskuuta 2026"
# What the small translator learns, where there is no trained one.
LOCALES = ("de_DE", "en_US", "fi_FI", "fr_FR")
# How marks are written that would not be seen.
NAMES = {" ": "␣", "▁": "␣", "<s>": "start", "</s>": "end"}


def train_small_translator(smoke):
    """Teach a small model to read dates of a few languages."""
    from keras_tfm.data.dates import date_pairs

    drawn = date_pairs(20_000 if smoke else 200_000, seed=0)
    kept = [pair for pair in drawn if pair[0].startswith(LOCALES)]
    pairs = SentencePairs(*zip(*kept, strict=True), name="dates")
    translator = Translator.from_pairs(
        pairs,
        tokenizer="characters",
        joint=False,
        source_lengths=(64,),
        max_target_length=12,
        num_layers=1 if smoke else 2,
        num_decoder_layers=1,
        hidden_dim=32 if smoke else 64,
        intermediate_dim=32 if smoke else 128,
        num_heads=4,
        dropout=0.0,
    )
    steps = 20 if smoke else 1000
    settings = TrainingSettings(
        tokens_per_batch=2048,
        max_shapes=1,
        peak=4e-3,
        warmup_steps=steps // 5,
        decay_steps=steps,
        label_smoothing=0.0,
    )
    print(f"Training a small translator of dates for {steps:,} steps ...")
    translator.fit(pairs, settings, steps=steps)
    return translator


def load_or_train(folder, smoke):
    """Take the translator in the folder, or make a small one."""
    if smoke or not (folder / "translator.json").is_file():
        return train_small_translator(smoke)
    print(f"The translator in {folder}")
    return Translator.load(folder)


def readable(tokens):
    """Make names of tokens that can be read on an axis."""
    return [NAMES.get(token, token.replace("▁", "␣")) for token in tokens]


def draw(record, title):
    """Draw the heads of the last decoder layer on a grid, and their mean."""
    heads = record["cross"][-1]  # (heads, written tokens, read tokens)
    read = readable(record["source_tokens"])
    written = readable(record["target_tokens"])

    # The mean at the left, as high as all the rows of heads.
    rows = math.ceil(len(heads) / 2)
    width = max(2.5, 0.19 * len(read))
    height = max(1.5, 0.19 * len(written) + 0.4)
    figure = Figure(
        (3.3 * width + 1, rows * height + 0.6), layout="constrained"
    )
    figure.suptitle(title, fontsize=12)
    grid = figure.add_gridspec(rows, 3, width_ratios=[1.3, 1, 1])
    mean = figure.add_subplot(grid[:, 0])
    draw_panel(mean, "mean of the heads", heads.mean(axis=0), read, written)
    mean.set_xlabel("read")
    mean.set_ylabel("written")
    for number, head in enumerate(heads):
        axes = figure.add_subplot(grid[number // 2, 1 + number % 2])
        draw_panel(axes, f"head {number + 1}", head, read, written)
    return figure


def draw_panel(axes, name, weights, read, written):
    """Draw one matrix of weights: rows are written, columns are read."""
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    axes.set_title(name, fontsize=10)
    axes.set_xticks(np.arange(len(read)), read, fontsize=8)
    axes.set_yticks(np.arange(len(written)), written, fontsize=8)
    for label in axes.get_xticklabels():
        label.set_rotation(90 if len(label.get_text()) > 1 else 0)
    # Thin white lines between the squares.
    axes.set_xticks(np.arange(len(read) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(written) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_color("lightgrey")


def write_picture(figure, output):
    """Write a PNG of 64 colours, which is small."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100, facecolor="white")
    output.parent.mkdir(parents=True, exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(64).save(output, optimize=True)
    print(f"Wrote {output}, {output.stat().st_size / 1000:.0f} kB.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--text", default=TEXT, help="what is translated")
    parser.add_argument(
        "--output", type=pathlib.Path, help=f"default: {OUTPUT}"
    )
    parser.add_argument("--smoke", action="store_true", help="seconds")
    arguments = parser.parse_args()
    output = arguments.output
    if output is None:
        # A picture of a model that knows nothing must not replace a good one.
        smoke_folder = pathlib.Path(tempfile.gettempdir())
        output = smoke_folder / OUTPUT.name if arguments.smoke else OUTPUT

    translator = load_or_train(arguments.folder, arguments.smoke)
    (translation,) = translator.translate([arguments.text])
    print(f"{arguments.text} -> {translation}")
    record = translator.attention(arguments.text, translation)

    # In words, for the mean of the heads.
    weights = record["cross"][-1].mean(axis=0)
    read = readable(record["source_tokens"])
    for token, row in zip(
        readable(record["target_tokens"]), weights, strict=True
    ):
        best = np.argsort(row)[::-1][:3]
        places = ", ".join(f"{read[i]} ({row[i]:.2f})" for i in best)
        print(f"  to write {token:>5} it looks at {places}")

    figure = draw(record, f"{arguments.text}  →  {translation}")
    write_picture(figure, output)


if __name__ == "__main__":
    main()

"""Hold BytePairTokenizer to SentencePieceTokenizer on every line of a folder.

For each model (two languages, two normalizations) and each text file: the
lines whose ids differ, the lines whose decoded text differs, and the time of
`tokenize` for 1000 lines in both, from the same run. Ends with 1 if any line
differs.

    python benchmarks/tokenizer_parity.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from keras_tfm.text.byte_pair_tokenizer import BytePairTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.tokenizer import Tokenizer

CORPORA = {
    "multi30k": ("multi30k/train.en.gz", "multi30k/train.de.gz"),
    "tatoeba": ("tatoeba_zh_en/train.zh.gz", "tatoeba_zh_en/train.en.gz"),
}
NORMALIZATIONS = ("nmt_nfkc", "identity")
ENDINGS = {".csv", ".de", ".en", ".fr", ".jsonl", ".tsv", ".txt", ".zh"}
BATCH_LINES = 1000
BATCH_CHARACTERS = 200_000


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a text file, gzipped or not, as they are."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return content.removesuffix(b"\n").split(b"\n")


def text_files(data: Path) -> list[Path]:
    """Return all files below a folder that hold lines of text."""
    return sorted(
        path
        for path in data.rglob("*")
        if path.with_name(path.name.removesuffix(".gz")).suffix in ENDINGS
        and not path.name.startswith(("LICENSE", "README"))
    )


def batches(lines: list[bytes]) -> Iterator[tf.Tensor]:
    """Yield the lines in batches of bounded numbers and sizes."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (
            len(batch) == BATCH_LINES or size + len(line) > BATCH_CHARACTERS
        ):
            yield tf.constant(batch, tf.string)
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    yield tf.constant(batch, tf.string)


def timed(function: Callable, *arguments: object) -> tuple[object, float]:
    """Return what a function returns, and the seconds that it took."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def differing(first: list, second: list) -> int:
    """Count the places where two lists of one length differ."""
    return sum(a != b for a, b in zip(first, second, strict=True))


def compare(
    expected: Tokenizer, tested: Tokenizer, lines: list[bytes]
) -> tuple[int, int, float, float]:
    """Count the lines that differ in ids and in texts, and time both.

    Returns:
        The two counts, and the milliseconds for 1000 lines of `tokenize` in
        `expected` and in `tested`.
    """
    ids_differ = texts_differ = 0
    seconds = [0.0, 0.0]
    for batch in batches(lines):
        rows = []
        for place, tokenizer in enumerate((expected, tested)):
            ids, spent = timed(tokenizer.tokenize, batch)
            seconds[place] += spent
            rows.append(ids)
        ids_differ += differing(*(ids.to_list() for ids in rows))
        texts_differ += differing(
            expected.detokenize(rows[0]).numpy().tolist(),
            tested.detokenize(rows[1]).numpy().tolist(),
        )
    scale = 1e6 / len(lines)
    return ids_differ, texts_differ, seconds[0] * scale, seconds[1] * scale


def single_line_ms(tokenizer: Tokenizer, lines: list[bytes]) -> float:
    """Return the median milliseconds of `tokenize` on one line at a time."""
    spent = sorted(
        timed(tokenizer.tokenize, tf.constant([line]))[1]
        for line in lines[:200]
    )
    return spent[len(spent) // 2] * 1e3


def main() -> int:
    """Run all comparisons and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--vocabulary-size", type=int, default=8000)
    parser.add_argument("--corpora", nargs="+", default=sorted(CORPORA))
    options = parser.parse_args()
    files = text_files(options.data)
    all_differ = 0
    for corpus in options.corpora:
        training = [
            line.decode()
            for name in CORPORA[corpus]
            for line in read_lines(options.data / name)
        ]
        for normalization in NORMALIZATIONS:
            expected = SentencePieceTokenizer.train(
                training, options.vocabulary_size, normalization=normalization
            )
            tested, spent = timed(
                BytePairTokenizer.from_sentencepiece, expected
            )
            tested.tokenize([""])
            one = read_lines(options.data / CORPORA[corpus][1])
            print(
                f"\n{corpus}, {normalization}: made in {spent:.2f} s; one "
                f"line {single_line_ms(expected, one):.2f} ms in "
                "SentencePieceTokenizer, "
                f"{single_line_ms(tested, one):.2f} ms in BytePairTokenizer"
            )
            print(
                f"{'file':42}{'lines':>7}{'ids':>5}{'texts':>6}"
                f"{'ms/1k SP':>10}{'ms/1k BP':>10}"
            )
            total = 0
            for path in files:
                lines = read_lines(path)
                ids, texts, theirs, ours = compare(expected, tested, lines)
                name = str(path.relative_to(options.data))
                print(
                    f"{name:42}{len(lines):7}{ids:5}{texts:6}"
                    f"{theirs:10.1f}{ours:10.1f}",
                    flush=True,
                )
                total += len(lines)
                all_differ += ids + texts
            print(f"{total} lines")
    print(f"\n{all_differ} differences")
    return int(all_differ > 0)


if __name__ == "__main__":
    sys.exit(main())

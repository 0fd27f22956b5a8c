"""CTranslate2 on exported weights beside ours: tokens, scores and BLEU.

    python benchmarks/ctranslate2_parity.py --translator runs/en-de \\
        --source ../shared/data/multi30k/tok/test2016.en \\
        --target ../shared/data/multi30k/tok/test2016.de --tokenize none

Greedy and with four beams, without a length penalty, which both define alike.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    """Translate with both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--translator", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--tokenize", help="sacrebleu's tokenizer")
    arguments = parser.parse_args()

    import ctranslate2

    from keras_tfm.generation import BeamSearchGenerator
    from keras_tfm.generation import NoLengthPenalty
    from keras_tfm.tasks.export_formats import export_ctranslate2
    from keras_tfm.tasks.scores import bleu
    from keras_tfm.tasks.translation import Translator

    translator = Translator.load(arguments.translator)
    sources = Path(arguments.source).read_text("utf-8").splitlines()
    targets = Path(arguments.target).read_text("utf-8").splitlines()
    longest = translator.max_target_length
    source, target = translator.source_tokenizer, translator.target_tokenizer
    pieces = [source.pieces(row) for row in source.tokenize(sources).to_list()]
    ids = {
        piece: i
        for i, piece in enumerate(target.pieces(range(target.vocabulary_size)))
    }
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(translator, Path(folder) / "model")
        other = ctranslate2.Translator(str(Path(folder) / "model"))
    print("beams   same texts  scores differ by  BLEU ours, theirs")
    for beams in (1, 4):
        search = BeamSearchGenerator(
            longest, beams, 1, length_penalty=NoLengthPenalty()
        )
        ours = [best for [best] in translator.translate_nbest(sources, search)]
        theirs = other.translate_batch(
            pieces,
            beam_size=beams,
            length_penalty=0,
            min_decoding_length=0,
            max_decoding_length=longest,
            return_scores=True,
        )
        rows = [[ids[p] for p in result.hypotheses[0]] for result in theirs]
        width = max(map(len, rows))
        padded = [row + [0] * (width - len(row)) for row in rows]
        texts = [t.decode() for t in target.detokenize(padded).numpy()]
        same = [a.text == b for a, b in zip(ours, texts, strict=True)]
        differ = max(
            abs(a.score - b.scores[0])
            for a, b, equal in zip(ours, theirs, same, strict=True)
            if equal
        )
        scores = [
            bleu(found, targets, arguments.tokenize).value
            for found in ([best.text for best in ours], texts)
        ]
        print(
            f"{beams:>5} {sum(same):>5} / {len(same):<4} {differ:>17.1e} "
            f"{scores[0]:.2f}, {scores[1]:.2f}"
        )


if __name__ == "__main__":
    main()

"""Subword regularisation: each epoch reads the same texts in other pieces.

A group is a run of characters that pieces can join; merges never leave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import tensorflow as tf

from keras_tfm.checks import check_share
from keras_tfm.checks import check_whole_number
from keras_tfm.text.byte_pair_tokenizer import BytePairTokenizer
from keras_tfm.text.sentencepiece_model import PieceType
from keras_tfm.text.sentencepiece_model import SentencePieceModel
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_tfm.text.tokenizer import Tokenizer
from keras_tfm.text.tokenizer import as_string_tensor

_BYTE_PAIR_ENCODING = 2
# So many texts at once: arrays that fit into a processor's cache.
_TEXTS_AT_ONCE = 4096
# The rank of a pair that is no piece, above the rank of every piece.
_NONE = 2**31 - 1
_PLACE_BITS = 32
_NO_MERGE = _NONE << _PLACE_BITS


class SubwordSampler:
    """Cut texts into subwords with some merges left out by chance.

    BPE-dropout (Provilkov et al., 2020): a model that meets a word in ever
    other pieces learns what the pieces have in common. For training texts
    alone; validate, score and serve with the tokenizer itself. Whatever the
    pieces, the ids detokenize to the same text.

    The merges go as in the paper. Before each merge of a word every pair of
    neighbours that makes a piece is left out with the chance `dropout`; of
    the others the one with the highest priority is merged, and a word with no
    pair left is finished. A pair that was left out has another chance after
    the next merge. (In the `sentencepiece` package it stays apart, so that
    the same `alpha` cuts words into more pieces; and in its release 0.2.3
    another process draws other pieces, whatever the seed.) Where no piece
    holds two neighbouring characters, as between many words of Chinese, there
    a word ends as well.

    The rows are a pure function of the texts, the seed and the epoch: an
    interrupted training resumes with the same ids, also in another process.
    Give `rows` the texts of the epoch in an order that does not change; a row
    depends on the rows before it. Samplers with equal seeds draw equal
    numbers, so give those of the sources and of the targets distinct seeds.

    Args:
        tokenizer: A `SentencePieceTokenizer` of a byte-pair model, or a
            `BytePairTokenizer`.
        dropout: Float in [0, 1). Share of the merges that are left out; 0
            gives the ids of `tokenizer.tokenize`. The paper uses 0.1, and 0.6
            for Chinese and Japanese.
        seed: Non-negative integer. Defaults to `0`.

    Raises:
        TypeError: If `tokenizer` is of another class.
        ValueError: If its model does no byte-pair encoding, or `dropout` or
            `seed` is not as described.

    Example:
        >>> texts = ["a cat sat on a mat", "a dog ate a cat"] * 3
        >>> tokenizer = SentencePieceTokenizer.train(texts, 290)
        >>> sampler = SubwordSampler(tokenizer, dropout=0.3, seed=1)
        >>> [tokenizer.pieces(row) for row in sampler.rows(["a cat"] * 2, 0)]
        [['▁a', '▁', 'ca', 't'], ['▁a', '▁c', 'at']]
    """

    def __init__(
        self,
        tokenizer: SentencePieceTokenizer | BytePairTokenizer,
        dropout: float,
        seed: int = 0,
    ) -> None:
        self.dropout = check_share("dropout", dropout)
        self.seed = check_whole_number("seed", seed)
        model = _checked_model(tokenizer)
        self.tokenizer = tokenizer
        # Pieces by rank: a lower rank is merged earlier.
        self._ids = np.argsort(-np.array(model.scores), kind="stable")
        ranks = np.argsort(self._ids)
        normal = {
            piece: number
            for number, piece in enumerate(model.pieces)
            if model.types[number] == PieceType.NORMAL
        }
        self._ranks = _PairTable(
            {
                (normal[piece[:cut]], normal[piece[cut:]]): ranks[number]
                for piece, number in normal.items()
                for cut in range(1, len(piece))
                if piece[:cut] in normal and piece[cut:] in normal
            }
        )
        spellings = _spellings(model, normal)
        self._sizes = np.array([len(ids) for ids in spellings])
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._spellings = np.concatenate(spellings).astype(np.int32)
        self._neighbours = _PairTable(
            {pair: 1 for ids in spellings for pair in pairwise(ids)}
        )

    def rows(
        self, texts: Sequence[str] | tf.Tensor, epoch: int
    ) -> list[np.ndarray]:
        """Cut each text into ids, in another way in each epoch.

        Args:
            texts: List of strings, or string tensor `(batch,)`.
            epoch: Non-negative integer. Number of the epoch.

        Returns:
            List of int32 arrays, one a text, without special ids added.

        Raises:
            ValueError: If `texts` is a single string, or `epoch` is negative.
        """
        texts = as_string_tensor(texts)
        epoch = check_whole_number("epoch", epoch)
        # Not [seed, epoch], whose numbers order the batches.
        random = np.random.default_rng(
            np.random.SeedSequence(self.seed, spawn_key=(epoch,))
        )
        rows: list[np.ndarray] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            ragged = self.tokenizer.tokenize(
                texts[start : start + _TEXTS_AT_ONCE]
            )
            ids, splits = ragged.values.numpy(), ragged.row_splits.numpy()
            if self.dropout and len(ids):
                ids, splits = self._sampled(ids, splits, random)
            rows += np.split(ids, splits[1:-1])
        return rows

    def _sampled(
        self, ids: np.ndarray, splits: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids after dropout, and the new `splits` of the rows."""
        last = self._spellings[(self._starts + self._sizes - 1)[ids]]
        first = self._spellings[self._starts[ids]]
        is_start = np.ones(len(ids), bool)
        is_start[1:] = self._neighbours.find(last[:-1], first[1:]) == _NONE
        is_start[splits[splits < len(ids)]] = True
        starts = np.flatnonzero(is_start)
        counts = np.diff(starts, append=len(ids))
        sizes = np.add.reduceat(self._sizes[ids], starts)
        # Most groups lose no merge: one draw tells, and they stay as they are.
        lossless = random.geometric(self.dropout, len(starts)) - 1
        is_cut = lossless < sizes - counts
        is_cut_id = np.repeat(is_cut, counts)
        cut = ids[is_cut_id]
        symbols, new_counts = self._merged(
            self._spellings[_ranges(self._starts[cut], self._sizes[cut])],
            sizes[is_cut],
            lossless[is_cut],
            random,
        )
        counts[is_cut] = new_counts
        result = np.empty(counts.sum(), np.int32)
        is_new = np.repeat(is_cut, counts)
        result[is_new] = symbols
        result[~is_new] = ids[~is_cut_id]
        ends = np.cumsum(np.append(0, counts))
        return result, ends[np.searchsorted(starts, splits)]

    def _merged(
        self,
        symbols: np.ndarray,
        sizes: np.ndarray,
        lossless: np.ndarray,
        random: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Merge groups of `sizes` symbols, one merge a group in each turn.

        The first turn in which the best merge of a group is left out is given
        by `lossless`; it is drawn already.
        """
        groups = np.arange(len(sizes))
        ranks = np.full(len(symbols), _NONE)
        ranks[:-1] = self._ranks.find(symbols[:-1], symbols[1:])
        ranks[np.cumsum(sizes) - 1] = _NONE
        done = []
        turn = 0
        while len(groups):
            ends = np.cumsum(sizes)
            starts = ends - sizes
            # A rank and its place in one number: the least is the best merge.
            merges = (ranks << _PLACE_BITS) + np.arange(len(ranks))
            is_out = random.random(len(ranks)) < self.dropout
            is_out &= np.repeat(turn >= lossless, sizes)
            best = np.minimum.reduceat(merges, starts)
            is_out[_place(best[turn == lossless])] = True
            merges[is_out] = _NO_MERGE
            best = np.minimum.reduceat(merges, starts)
            goes_on = best < _NO_MERGE
            stays = np.repeat(goes_on, sizes)
            done.append((groups[~goes_on], sizes[~goes_on], symbols[~stays]))
            best, starts, ends = best[goes_on], starts[goes_on], ends[goes_on]
            place = _place(best)
            symbols[place] = self._ids[best >> _PLACE_BITS]
            ranks[place] = _NONE
            right = place[place + 2 < ends]
            ranks[right] = self._ranks.find(symbols[right], symbols[right + 2])
            left = place[place > starts]
            ranks[left - 1] = self._ranks.find(symbols[left - 1], symbols[left])
            stays[place + 1] = False
            symbols, ranks = symbols[stays], ranks[stays]
            groups, lossless = groups[goes_on], lossless[goes_on]
            sizes = sizes[goes_on] - 1
            turn += 1
        return _in_order(done)


class _PairTable:
    """Look up many pairs of ids at once; `_NONE` for those not there."""

    def __init__(self, pairs: Mapping[tuple[int, int], int]) -> None:
        keys = np.array([_NO_MERGE, *(a << 32 | b for a, b in pairs)])
        order = np.argsort(keys)
        self._keys = keys[order]
        self._values = np.array([_NONE, *pairs.values()])[order]

    def find(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        keys = (left.astype(np.int64) << 32) | right
        place = np.searchsorted(self._keys, keys)
        return np.where(self._keys[place] == keys, self._values[place], _NONE)


def _checked_model(tokenizer: Tokenizer) -> SentencePieceModel:
    if not isinstance(tokenizer, (SentencePieceTokenizer, BytePairTokenizer)):
        raise TypeError(
            "`tokenizer` must be a SentencePieceTokenizer or a "
            "BytePairTokenizer: no other has merges to leave out. "
            f"Received: {tokenizer!r} of type {type(tokenizer).__name__}."
        )
    model = SentencePieceModel.parse(tokenizer.model_proto)
    if model.model_type != _BYTE_PAIR_ENCODING:
        raise ValueError(
            "The model of `tokenizer` must do byte-pair encoding (model type "
            "2): no other has merges to leave out. Received: model type "
            f"{model.model_type}. Train it with `SentencePieceTokenizer.train`."
        )
    return model


def _spellings(
    model: SentencePieceModel, normal: Mapping[str, int]
) -> list[list[int]]:
    """Return the ids of each piece's characters; of a byte its own id."""
    return [
        [normal[character] for character in piece]
        if kind == PieceType.NORMAL and all(c in normal for c in piece)
        else [number]
        for number, (piece, kind) in enumerate(
            zip(model.pieces, model.types, strict=True)
        )
    ]


def _place(merges: np.ndarray) -> np.ndarray:
    return merges & (2**_PLACE_BITS - 1)


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the places from each start on, as many as its size, in a row."""
    shift = starts - (np.cumsum(sizes) - sizes)
    return np.repeat(shift, sizes) + np.arange(sizes.sum())


def _in_order(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Sort symbols, which come with their groups and sizes, by group."""
    if not parts:
        return np.empty(0, np.int32), np.empty(0, np.int64)
    groups, sizes, symbols = map(np.concatenate, zip(*parts, strict=True))
    sorted_sizes = np.empty_like(sizes)
    sorted_sizes[groups] = sizes
    starts = np.cumsum(sorted_sizes) - sorted_sizes
    result = np.empty_like(symbols)
    result[_ranges(starts[groups], sizes)] = symbols
    return result, sorted_sizes

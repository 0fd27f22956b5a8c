"""Sentence pairs as the batches that the settings of a training ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_tfm.data.batching import BucketedBatches
from keras_tfm.data.both_directions import BothDirections
from keras_tfm.data.bucket_edges import Edge
from keras_tfm.data.packed_batches import PackedBatches
from keras_tfm.data.row_room import row_room
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.data.shape_watch import named_tensors
from keras_tfm.data.shape_watch import watch_shapes
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.tokenizing import token_rows
from keras_tfm.text.subword_sampling import SubwordSampler
from keras_tfm.text.tokenizer import Tokenizer
from keras_tfm.training.compile_budget import CompileBudget

Batches = BucketedBatches | PackedBatches


def make_batches(
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    pairs: SentencePairs,
    settings: TrainingSettings,
) -> Batches:
    """Tokenize pairs and put them into batches of few shapes.

    Args:
        source_tokenizer: Tokenizer of the sources.
        target_tokenizer: Tokenizer of the targets.
        pairs: The pairs.
        settings: What batches they shall be.

    Raises:
        TypeError: If the subwords shall vary and a tokenizer cannot do so.
        ValueError: If pairs shall be turned and there are two vocabularies.
    """
    rows = (
        token_rows(source_tokenizer, pairs.sources),
        token_rows(target_tokenizer, pairs.targets),
    )
    limits = {
        "max_sequence_length": settings.max_sequence_length,
        "seed": settings.seed,
    }
    if settings.batching == "buckets":
        return BucketedBatches(
            *rows,
            settings.tokens_per_batch,
            max_shapes=settings.max_shapes,
            **limits,
        )
    resample = None
    row_length = settings.row_length
    if settings.subword_dropout:
        resample = _resample(
            source_tokenizer, target_tokenizer, pairs, settings
        )
    if settings.bidirectional_epochs:
        if source_tokenizer is not target_tokenizer:
            raise ValueError(
                "To read pairs in both directions takes one vocabulary for "
                "both sides. Received: bidirectional_epochs="
                f"{settings.bidirectional_epochs} and two tokenizers. Make "
                "the translator with `joint=True` (`--joint`)."
            )
        row_length = row_length or _room_for_both_directions(rows, settings)
        resample = BothDirections(
            *rows,
            settings.bidirectional_epochs,
            resample=resample,
            seed=settings.seed,
        )
    return PackedBatches(
        *rows,
        settings.tokens_per_batch,
        row_length=row_length,
        resample=resample,
        **limits,
    )


def make_validation_batches(
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    pairs: SentencePairs,
    settings: TrainingSettings,
    training: Batches,
) -> Batches:
    """Put validation pairs into batches as those of the training.

    The same shapes where that is possible, and always the usual subwords.
    """
    settings = dataclasses.replace(
        settings, subword_dropout=0.0, bidirectional_epochs=0
    )
    if isinstance(training, PackedBatches):
        settings = dataclasses.replace(
            settings, row_length=max(training.shapes[0][1:])
        )
    return make_batches(source_tokenizer, target_tokenizer, pairs, settings)


def watch_batches(
    dataset: tf.data.Dataset, batches: Batches
) -> tuple[tf.data.Dataset, CompileBudget]:
    """Let a callback know when a batch has none of the promised shapes.

    Args:
        dataset: What a training reads.
        batches: What the dataset was made of; its `shapes` are the promise.

    Returns:
        The dataset to train on, and the callback.
    """
    names = named_tensors(dataset.element_spec)
    budget = CompileBudget(
        [
            {
                name: (rows, source if name.startswith("source") else target)
                for name in names
            }
            for rows, source, target in batches.shapes
        ]
    )
    return watch_shapes(dataset, budget.see), budget


def _room_for_both_directions(
    rows: tuple[list[np.ndarray], list[np.ndarray]], settings: TrainingSettings
) -> Edge:
    """Choose the room where each side of a pair may stand on either side."""
    with_end = 1
    lengths = np.array([list(map(len, side)) for side in rows]) + with_end
    longest = settings.tokens_per_batch
    if settings.max_sequence_length is not None:
        longest = min(longest, settings.max_sequence_length)
    both = np.hstack([lengths, lengths[::-1]])
    return row_room(both, longest, settings.tokens_per_batch)


def _resample(
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    pairs: SentencePairs,
    settings: TrainingSettings,
) -> Callable[[int], tuple[list[np.ndarray], list[np.ndarray]]]:
    # Seeds of their own: a word on both sides is not cut alike.
    sides: tuple[tuple[SubwordSampler, Any], ...] = tuple(
        (SubwordSampler(tokenizer, settings.subword_dropout, seed), texts)
        for tokenizer, seed, texts in (
            (source_tokenizer, 2 * settings.seed, pairs.sources),
            (target_tokenizer, 2 * settings.seed + 1, pairs.targets),
        )
    )
    return lambda epoch: tuple(s.rows(list(t), epoch) for s, t in sides)

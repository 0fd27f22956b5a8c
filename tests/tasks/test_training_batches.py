"""Pairs become the batches that the settings ask for."""

import itertools
import warnings

import numpy as np
import pytest

from keras_tfm.data.batching import BucketedBatches
from keras_tfm.data.packed_batches import PackedBatches
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.data.token_weights import with_token_weights
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.training_batches import make_batches
from keras_tfm.tasks.training_batches import make_validation_batches
from keras_tfm.tasks.training_batches import watch_batches
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer

TEXTS = [f"the {n} little birds sang in tree {n}" for n in range(41)]
PAIRS = SentencePairs(TEXTS, [text.upper() for text in TEXTS])
CHARACTERS = CharacterTokenizer.train([*PAIRS.sources, *PAIRS.targets])


@pytest.fixture(scope="module")
def subwords():
    return SentencePieceTokenizer.train([*PAIRS.sources, *PAIRS.targets], 330)


def epoch_tokens(batches):
    """Count the source tokens of each of the first two epochs."""
    counts = {}
    for epoch in (0, 1):
        sources, _, rows = batches._epoch(epoch, True)
        counts[epoch] = sum(int(sources.lengths[row].sum()) for row in rows)
    return counts


def test_batches_are_packed_unless_buckets_are_asked_for():
    settings = TrainingSettings(tokens_per_batch=512, max_shapes=2)
    packed = make_batches(CHARACTERS, CHARACTERS, PAIRS, settings)
    assert isinstance(packed, PackedBatches)
    settings = TrainingSettings(
        tokens_per_batch=512, max_shapes=2, batching="buckets"
    )
    buckets = make_batches(CHARACTERS, CHARACTERS, PAIRS, settings)
    assert isinstance(buckets, BucketedBatches)
    assert len(buckets.shapes) <= 2
    assert packed.num_pairs == buckets.num_pairs == len(PAIRS)


def test_limits_of_length_and_row_are_kept():
    settings = TrainingSettings(
        tokens_per_batch=512, row_length=90, max_sequence_length=35
    )
    batches = make_batches(CHARACTERS, CHARACTERS, PAIRS, settings)
    assert batches.shapes[0][1:] == (90, 90)
    longer = sum(len(text) + 1 > 35 for text in TEXTS)
    assert batches.num_dropped == longer > 0


def test_subwords_vary_with_the_epoch_and_come_again(subwords):
    settings = TrainingSettings(tokens_per_batch=512, subword_dropout=0.3)
    first = make_batches(subwords, subwords, PAIRS, settings)
    again = make_batches(subwords, subwords, PAIRS, settings)
    usual = make_batches(
        subwords, subwords, PAIRS, TrainingSettings(tokens_per_batch=512)
    )
    counts = epoch_tokens(first)
    assert counts[0] != counts[1]
    assert counts == epoch_tokens(again)
    assert len({*epoch_tokens(usual).values()}) == 1
    assert counts[0] > epoch_tokens(usual)[0]
    one, other = (
        [x["source_ids"].numpy() for x, _ in itertools.islice(b.dataset(), 5)]
        for b in (first, again)
    )
    np.testing.assert_array_equal(one, other)


def test_a_word_on_both_sides_is_not_cut_alike(subwords):
    same = SentencePairs(TEXTS, TEXTS)
    settings = TrainingSettings(tokens_per_batch=512, subword_dropout=0.5)
    batches = make_batches(subwords, subwords, same, settings)
    sources, targets = batches._ids(0)
    assert (sources.lengths != targets.lengths).any()


def test_a_tokenizer_that_cannot_vary_is_an_error():
    settings = TrainingSettings(subword_dropout=0.1)
    with pytest.raises(TypeError, match="CharacterTokenizer"):
        make_batches(CHARACTERS, CHARACTERS, PAIRS, settings)


def test_the_first_epochs_read_some_pairs_backwards(subwords):
    settings = TrainingSettings(
        tokens_per_batch=512, bidirectional_epochs=2, subword_dropout=0.3
    )
    batches = make_batches(subwords, subwords, PAIRS, settings)

    def backwards(epoch):
        sources, _ = batches._ids(epoch)
        ends = sources.starts + sources.lengths
        texts = subwords.detokenize(
            [
                sources.flat[start : end - 1].tolist()
                for start, end in zip(sources.starts, ends, strict=True)
            ]
        )
        texts = [text.decode() for text in texts.numpy()]
        pairs = list(zip(PAIRS.sources, PAIRS.targets, strict=True))
        return [
            pair.index(text) == 1
            for text, pair in zip(texts, pairs, strict=True)
        ]

    first, second, third = map(backwards, range(3))
    assert sum(first) in (len(PAIRS) // 2, len(PAIRS) // 2 + 1)
    assert first == [not turned for turned in second]
    assert not any(third)
    few = SentencePairs(TEXTS[:7], PAIRS.targets[:7])
    validation = make_validation_batches(
        subwords, subwords, few, settings, batches
    )
    assert len(validation._ids(0)[0].lengths) == 7
    assert validation._resample is None


def test_both_directions_have_the_same_room():
    short = SentencePairs(TEXTS, [text[:9] for text in TEXTS])
    settings = TrainingSettings(tokens_per_batch=512)
    one_way = make_batches(CHARACTERS, CHARACTERS, short, settings)
    _, source, target = one_way.shapes[0]
    assert target < source
    settings = TrainingSettings(tokens_per_batch=512, bidirectional_epochs=2)
    both_ways = make_batches(CHARACTERS, CHARACTERS, short, settings)
    _, source, target = both_ways.shapes[0]
    assert source == target
    # A pair that did not fit after it was turned would stay as it was.
    sources, targets = both_ways._ids(0)
    turned = (sources.lengths < targets.lengths).sum()
    assert turned in (len(TEXTS) // 2, len(TEXTS) // 2 + 1)


def test_both_directions_need_one_vocabulary():
    other = CharacterTokenizer.train(PAIRS.targets)
    settings = TrainingSettings(bidirectional_epochs=2)
    with pytest.raises(ValueError, match=r"two tokenizers.*--joint"):
        make_batches(CHARACTERS, other, PAIRS, settings)


def test_validation_has_the_shape_of_the_training_and_usual_subwords(subwords):
    settings = TrainingSettings(tokens_per_batch=512, subword_dropout=0.3)
    training = make_batches(subwords, subwords, PAIRS, settings)
    few = SentencePairs(TEXTS[:7], TEXTS[:7])
    validation = make_validation_batches(
        subwords, subwords, few, settings, training
    )
    assert validation.shapes[0][1:] == training.shapes[0][1:]
    assert len({*epoch_tokens(validation).values()}) == 1


def read(dataset, batches):
    """Read some watched batches; return the callback and what it said."""
    watched, budget = watch_batches(dataset, batches)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, _ in enumerate(watched.take(9)):
            budget.on_train_batch_end(number)
    return budget, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("batching", ["packed", "buckets"])
def test_our_own_batches_have_the_shapes_they_promise(batching):
    settings = TrainingSettings(
        tokens_per_batch=128, max_shapes=2, batching=batching
    )
    batches = make_batches(CHARACTERS, CHARACTERS, PAIRS, settings)
    budget, said = read(batches.dataset(), batches)
    assert said == []
    assert len(budget.programs) == budget.expected == len(batches.shapes)
    # Also with the weights of several batches that make one update.
    weighted = with_token_weights(batches.dataset().take(4), 1)
    assert read(weighted, batches)[1] == []


def test_the_shapes_of_sources_and_targets_are_told_apart():
    sources, targets = [np.array([5, 6])] * 7, [np.array([5] * 4)] * 7
    batches = BucketedBatches(sources, targets, 15, bucket_edges=[(3, 5)])
    budget, said = read(batches.dataset(), batches)
    assert said == []
    assert budget.programs[0]["source_ids"] == (3, 3)
    assert budget.programs[0]["labels"] == (3, 5)


def test_a_batch_that_nobody_promised_is_warned_of():
    settings = TrainingSettings(
        tokens_per_batch=128, max_shapes=2, batching="buckets"
    )
    batches = make_batches(CHARACTERS, CHARACTERS, PAIRS, settings)
    short = (
        batches.dataset()
        .take(2)
        .map(
            lambda inputs, labels: (
                {name: ids[:1] for name, ids in inputs.items()},
                labels[:1],
            )
        )
    )
    budget, said = read(batches.dataset().take(3).concatenate(short), batches)
    assert len(said) == len(budget.programs) - budget.expected >= 1
    assert "source_ids int32 (1, " in said[0]

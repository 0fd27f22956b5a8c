"""The attention record of a text, without training."""

import numpy as np
import pytest

from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.attention_record import attention_record
from keras_tfm.tasks.translation import Translator
from keras_tfm.text.character_tokenizer import CharacterTokenizer


@pytest.fixture
def translator():
    tokenizer = CharacterTokenizer.train(["abcdé"])
    model = Transformer(
        tokenizer.vocabulary_size,
        num_layers=2,
        hidden_dim=6,
        intermediate_dim=7,
        num_heads=3,
        num_decoder_layers=1,
    )
    return Translator(model, tokenizer, tokenizer, 11, (5, 8), (1,))


def test_shapes_follow_layers_heads_queries_and_keys(translator):
    record = attention_record(translator, "abcé", "da")
    assert record["source_tokens"] == ["a", "b", "c", "é", "</s>"]
    assert record["target_tokens"] == ["d", "a", "</s>"]
    assert record["encoder"].shape == (2, 3, 5, 5)
    assert record["decoder"].shape == (1, 3, 3, 3)
    assert record["cross"].shape == (1, 3, 3, 5)
    np.testing.assert_allclose(record["cross"].sum(-1), 1, atol=1e-6)
    assert np.triu(record["decoder"][0, 0], 1).max() == 0


def test_names_a_text_that_is_too_long(translator):
    with pytest.raises(ValueError, match="Text 1 takes 10 tokens"):
        attention_record(translator, "a" * 9, "b")

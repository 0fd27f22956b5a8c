"""A translator's folder: complete, replaced whole, refused if it is none."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.translation import Translator
from keras_tfm.tasks.translator_folder import CONFIG_FILE
from keras_tfm.tasks.translator_folder import MODEL_FILE
from keras_tfm.tasks.translator_folder import save_translator
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer


@pytest.fixture
def eagerly():
    """Compile nothing: two texts are translated sooner without."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def make_translator(joint=True):
    source = CharacterTokenizer.train(["abcd"])
    target = source if joint else CharacterTokenizer.train(["xyz"])
    model = Transformer(
        source.vocabulary_size,
        target.vocabulary_size,
        num_layers=1,
        hidden_dim=6,
        intermediate_dim=7,
        num_heads=3,
        tie_embeddings="all" if joint else None,
    )
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    return Translator(model, source, target, 9, (5, 7), (1, 2))


@pytest.mark.parametrize("joint", [True, False])
def test_everything_comes_back(tmp_path, eagerly, joint):
    translator = make_translator(joint)
    translator.save(tmp_path)
    loaded = Translator.load(tmp_path)
    assert loaded.max_target_length == 9
    assert loaded.source_lengths == (5, 7)
    assert loaded.batch_sizes == (1, 2)
    assert (loaded.source_tokenizer is loaded.target_tokenizer) == joint
    for mine, theirs in zip(
        translator.model.weights, loaded.model.weights, strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert loaded.translate(["abc", "d"]) == translator.translate(["abc", "d"])


def test_a_second_save_replaces_the_first_and_leaves_nothing_behind(tmp_path):
    translator = make_translator()
    translator.save(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    translator.model.weights[0].assign(translator.model.weights[0] * 2)
    translator.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    np.testing.assert_array_equal(
        Translator.load(tmp_path).model.weights[0], translator.model.weights[0]
    )


def test_a_folder_without_weights_can_be_resumed_but_not_used(tmp_path):
    translator = make_translator()
    save_translator(translator, tmp_path, weights=False)
    fresh = Translator.load(tmp_path, weights=False)
    assert fresh.model.count_params() == translator.model.count_params()
    with pytest.raises(ValueError, match="has not finished"):
        Translator.load(tmp_path)


@pytest.mark.parametrize("content", [None, "", "[]", '{"task": "cooking"}'])
def test_says_that_a_folder_is_none_of_a_translator(tmp_path, content):
    if content is not None:
        (tmp_path / CONFIG_FILE).write_text(content)
    with pytest.raises(ValueError, match="is not the folder of a translator"):
        Translator.load(tmp_path)
    with pytest.raises(ValueError, match="is not the folder of a translator"):
        Translator.load(tmp_path / "missing")


def test_the_settings_are_readable_and_hold_no_paths(tmp_path):
    make_translator().save(tmp_path)
    text = (tmp_path / CONFIG_FILE).read_text()
    assert json.loads(text)["task"] == "translation"
    assert str(tmp_path) not in text
    assert (tmp_path / MODEL_FILE).is_file()


def test_a_sentencepiece_tokenizer_moves_with_the_folder(tmp_path):
    tokenizer = SentencePieceTokenizer.train(
        ["你好 世界", "hello world", "the cat"] * 20, vocabulary_size=300
    )
    model = Transformer(
        tokenizer.vocabulary_size,
        num_layers=1,
        hidden_dim=6,
        intermediate_dim=7,
        num_heads=3,
    )
    Translator(model, tokenizer, tokenizer).save(tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    loaded = Translator.load(tmp_path / "after").source_tokenizer
    text = "你好 世界 🙂 hello"
    assert loaded.detokenize(loaded.tokenize([text])).numpy()[0].decode() == (
        text
    )

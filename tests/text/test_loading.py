"""load_tokenizer finds the kind by the file."""

import pytest

from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.loading import load_tokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer


def test_each_kind_comes_back_as_what_it_was(tmp_path):
    subwords = SentencePieceTokenizer.train(["a cat", "a dog"], 280)
    for name, saved in (("a", CharacterTokenizer("ab")), ("b", subwords)):
        saved.save(tmp_path / name)
        loaded = load_tokenizer(tmp_path / name)
        assert type(loaded) is type(saved)
        assert loaded.tokenize(["ab"]).to_list() == (
            saved.tokenize(["ab"]).to_list()
        )


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=r"`characters\.json` or `sentencepiece\.model`",
    ):
        load_tokenizer(tmp_path)


def test_two_tokenizers_in_one_folder_are_an_error(tmp_path):
    CharacterTokenizer("ab").save(tmp_path)
    (tmp_path / "sentencepiece.model").write_bytes(b"")
    with pytest.raises(ValueError, match="Two tokenizers"):
        load_tokenizer(tmp_path)

"""TextNormalizer against the normalizer of the sentencepiece package."""

import functools
import io
import unicodedata

import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.text.sentencepiece_model import SentencePieceModel
from keras_tfm.text.text_normalizer import TextNormalizer
from keras_tfm.text.utf8 import TEXT_END

SETTINGS = {
    "default": {},
    "identity": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    },
    "casefold": {"normalization_rule_name": "nmt_nfkc_cf"},
    "no_prefix": {"add_dummy_prefix": False},
    "all_spaces": {"remove_extra_whitespaces": False},
    "collapse_only": {"normalization_rule_name": "identity"},
}
PARTS = [
    *" \t\n\0\x01aAé▁́̈̂ͅ",
    *("  ", "\u3000", "\u200b", "\ufeff", "\ufffd", "¨", "ﷺ", "①", "ﬁ", "İ"),
    *("ガ", "か\u3099", "ᄒ", "ᅡ", "ᆫ", "Α", "\u0313", "\u0301", "🐈", "，"),  # noqa: RUF001
]


def train(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a cat sat", "the dog"] * 5),
        model_writer=model,
        model_type="bpe",
        byte_fallback=True,
        vocab_size=290,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


@functools.cache
def both(name):
    """Return a normalizer and the package's, each a function of texts."""
    proto = train(**SETTINGS[name])
    package = sentencepiece.SentencePieceProcessor(model_proto=proto)
    normalizer = TextNormalizer(SentencePieceModel.parse(proto))
    in_graph = tf.function(
        lambda texts: normalizer(texts),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )

    def ours(texts):
        codes = in_graph(tf.constant(texts, tf.string)).numpy().tolist()
        joined = "".join(chr(c) if c != TEXT_END else "\n" for c in codes)
        return joined.split("\n")[:-1]

    return ours, lambda texts: [package.normalize(text) for text in texts]


@pytest.mark.parametrize("name", SETTINGS)
@settings(max_examples=40)
@given(
    texts=st.lists(
        st.lists(
            st.one_of(st.sampled_from(PARTS), st.characters(codec="utf-8")),
            max_size=13,
        )
        .map("".join)
        # The line feed is what parts the texts in this test.
        .map(lambda text: text.replace("\n", "")),
        max_size=5,
    )
)
def test_any_text_is_normalized_as_sentencepiece_does(name, texts):
    ours, package = both(name)
    assert ours(texts) == package(texts)


def test_sequences_are_composed_by_the_longest_rule():
    words = "Ärger Việt Nam 한국어 ガギグ Ἄιδης ᾂ ệ ộ"
    parts = unicodedata.normalize("NFD", words)
    assert parts != words
    ours, package = both("default")
    assert ours([parts]) == package([parts])
    assert ours([parts]) == ours([words])


def test_rules_that_overlap_apply_from_left_to_right(tmp_path):
    rules = tmp_path / "rules.tsv"
    # aa -> x, aba -> y, b -> z
    rules.write_text("61 61\t78\n61 62 61\t79\n62\t7A\n")
    proto = train(normalization_rule_tsv=rules)
    normalizer = TextNormalizer(SentencePieceModel.parse(proto))
    package = sentencepiece.SentencePieceProcessor(model_proto=proto)
    for text in ("aaa", "aaaba", "abaaba", "ababa", "a" * 101 + "ba", "bab"):
        codes = normalizer(tf.constant([text])).numpy()[:-1]
        assert "".join(map(chr, codes)) == package.normalize(text)


def test_a_rule_that_writes_two_spaces_is_an_error(tmp_path):
    rules = tmp_path / "rules.tsv"
    rules.write_text("61\t20 20\n")
    model = SentencePieceModel.parse(train(normalization_rule_tsv=rules))
    with pytest.raises(ValueError, match=r"two spaces in a row.*`nmt_nfkc`"):
        TextNormalizer(model)

"""BytePairTokenizer against the package and the ops of SentencePiece."""

import functools
import gzip
import io
import json
import struct
import unicodedata
from pathlib import Path

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_tfm.text.byte_pair_tokenizer import BytePairTokenizer
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.loading import load_tokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
CORPORA = {
    "tatoeba": ("tatoeba_zh_en/train.zh.gz", "tatoeba_zh_en/train.en.gz"),
    "multi30k": ("multi30k/train.en.gz", "multi30k/train.de.gz"),
}
MADE_UP = [
    f"{who} {did} {what} {n}。我们看见{n}只{animal}！"  # noqa: RUF001
    for n in range(7)
    for who in ("The cat", "A dog", "Ein Mädchen")
    for did in ("saw", "ate", "hörte")
    for what in ("the ball", "two trees", "einen Vogel")
    for animal in ("猫", "狗", "鳥")
]
ODD_TEXTS = [
    "",
    " ",
    "  two  spaces  ",
    "猫和🐈、👩‍👩‍👧‍👦 和 🇨🇳",
    "tab\tnewline\nreturn\r.",
    "full-width ＡＢＣ１２３，。",  # noqa: RUF001
    unicodedata.normalize("NFD", "é à ü ガ 한국어 Việt"),
    "zero\u200bwidth soft\u00adhyphen \ufeffbom \ufffd",
    "nul\x00byte",
    "\x00",
    "\x01 ",
    "<s> </s> <pad> <unk> ▁ <0xE7>",
    "▁▁a▁ ▁",
    "a\ud800b",
    b"a\xff\xfeb",
    b"\xe7\x8c",
    b"\xed\xa0\x80 c",
    b"\xf0\x9f\x90",
    b"\xc0\xaf\xf4\x90\x80\x80\xef\xbf\xbd",
    "the cat" * 1429,
    "x" * 10_007,
    "猫" * 10_007,
    "etaoinshrdlu" * 835,
]
KINDS = ("nmt_nfkc", "identity")


def read(name):
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


@functools.cache
def corpus(name):
    """Return some lines of a corpus, or made-up ones where it is absent."""
    if not (DATA / CORPORA[name][0]).is_file():
        return MADE_UP
    return [line for part in CORPORA[name] for line in read(part)[::13]]


@functools.cache
def trained(name, normalization):
    lines = corpus(name)
    size = 4001 if len(lines) > 1000 else 401
    tokenizer = SentencePieceTokenizer.train(
        lines, size, normalization=normalization
    )
    return tokenizer, BytePairTokenizer.from_sentencepiece(tokenizer)


@functools.cache
def small(normalization="nmt_nfkc"):
    tokenizer = SentencePieceTokenizer.train(
        MADE_UP, 401, normalization=normalization
    )
    return tokenizer, BytePairTokenizer.from_sentencepiece(tokenizer)


def package(tokenizer):
    return sentencepiece.SentencePieceProcessor(
        model_proto=tokenizer.model_proto
    )


def train(texts, **options):
    model = io.BytesIO()
    given = {
        "model_type": "bpe",
        "byte_fallback": True,
        "vocab_size": 330,
        "pad_id": 0,
        "bos_id": 1,
        "eos_id": 2,
        "unk_id": 3,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **given,
    )
    return model.getvalue()


@pytest.mark.parametrize("normalization", KINDS)
@pytest.mark.parametrize("name", sorted(CORPORA))
def test_real_lines_get_the_ids_and_texts_of_sentencepiece(name, normalization):
    theirs, ours = trained(name, normalization)
    other = next(iter(CORPORA.keys() - {name}))
    lines = [*corpus(name), *corpus(other)[::3]]
    ids = ours.tokenize(lines)
    assert (ids.dtype, ids.row_splits.dtype) == (tf.int32, tf.int64)
    assert ids.to_list() == package(theirs).encode(lines)
    back = ours.detokenize(ids).numpy().tolist()
    assert back == theirs.detokenize(theirs.tokenize(lines)).numpy().tolist()


@pytest.mark.parametrize("normalization", KINDS)
@pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: ascii(text)[:30])
def test_odd_texts_get_the_ids_and_texts_of_sentencepiece(text, normalization):
    theirs, ours = small(normalization)
    ids = ours.tokenize([text])
    expected = theirs.tokenize([text])
    assert ids.to_list() == expected.to_list()
    (back,) = ours.detokenize(ids).numpy()
    assert back == theirs.detokenize(expected).numpy()[0]


@pytest.mark.parametrize("normalization", KINDS)
@given(texts=st.lists(st.one_of(st.text(max_size=13), st.binary(max_size=7))))
def test_any_text_gets_the_ids_of_sentencepiece(normalization, texts):
    theirs, ours = small(normalization)
    ids = ours.tokenize(tf.constant(texts, tf.string)).to_list()
    assert ids == package(theirs).encode(texts)


@functools.cache
def dense_merges(split):
    """Return models whose pieces overlap in many ways."""
    generator = np.random.default_rng(7)
    texts = ["".join(generator.choice(list("ab "), 31)) for _ in range(43)]
    proto = train(
        texts, split_by_whitespace=split, vocab_size=431, add_dummy_prefix=split
    )
    return sentencepiece.SentencePieceProcessor(
        model_proto=proto
    ), BytePairTokenizer(proto)


@pytest.mark.parametrize("split", [True, False])
@given(texts=st.lists(st.text("ab ", max_size=37), max_size=5))
def test_pieces_that_overlap_are_merged_in_the_order_of_sentencepiece(
    split, texts
):
    theirs, ours = dense_merges(split)
    texts = [*texts, "aab" * 11, "ab ba " * 5]
    assert ours.tokenize(texts).to_list() == theirs.encode(texts)


def test_rules_that_fold_case_are_followed_too():
    proto = train(MADE_UP, normalization_rule_name="nmt_nfkc_cf")
    texts = ["THE Cat", "STRAẞE İi", "ΑΪ"]
    ids = BytePairTokenizer(proto).tokenize(texts).to_list()
    theirs = sentencepiece.SentencePieceProcessor(model_proto=proto)
    assert ids == theirs.encode(texts)


@pytest.mark.parametrize("remove_extra_whitespaces", [True, False])
@pytest.mark.parametrize("add_dummy_prefix", [True, False])
def test_any_ids_read_as_sentencepiece_reads_them(
    add_dummy_prefix, remove_extra_whitespaces
):
    theirs = SentencePieceTokenizer(
        train(
            MADE_UP,
            add_dummy_prefix=add_dummy_prefix,
            remove_extra_whitespaces=remove_extra_whitespaces,
            unk_surface=" ?? ",
        )
    )
    ours = BytePairTokenizer(theirs.model_proto)
    size = ours.vocabulary_size
    assert size == theirs.vocabulary_size
    names = theirs.pieces(range(size))
    favoured = [0, 1, 2, 3, names.index("▁"), -1, size]
    favoured += [names.index(n) for n in names if n[0] == "▁" and n[1:]][:3]
    # The bytes of one character, whole and in parts.
    favoured += [4 + byte for byte in "猫é".encode()]
    generator = np.random.default_rng(3)
    ids = np.where(
        generator.random((1999, 11)) < 0.7,
        generator.choice(favoured, (1999, 11)),
        generator.integers(0, size, (1999, 11)),
    )
    back = ours.detokenize(ids).numpy().tolist()
    assert back == theirs.detokenize(ids).numpy().tolist()
    assert ours.pieces(range(-1, size + 1)) == theirs.pieces(
        range(-1, size + 1)
    )


def test_no_rows_and_empty_rows_are_texts_too():
    _, ours = small()
    assert ours.tokenize([]).to_list() == []
    assert ours.tokenize(["", "  ", ""]).to_list() == [[], [], []]
    assert ours.detokenize(tf.zeros((0, 5), tf.int32)).shape == (0,)
    empty = ours.detokenize(tf.zeros((2, 0), tf.int32))
    assert empty.numpy().tolist() == [b"", b""]


def test_one_string_is_an_error():
    with pytest.raises(ValueError, match=r"one string.*\[texts\]"):
        small()[1].tokenize("the cat")


def test_a_graph_and_a_data_pipeline_give_the_same_ids():
    theirs, ours = small()
    texts = ["the cat", "", "猫🐈"]
    expected = package(theirs).encode(texts)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def in_graph(texts):
        return ours.tokenize(texts)

    assert in_graph(tf.constant(texts)).to_list() == expected
    batches = tf.data.Dataset.from_tensor_slices(texts).batch(3)
    (rows,) = list(batches.map(ours.tokenize))
    assert rows.to_list() == expected


class Echo(tf.Module):
    """Two served functions that hold a tokenizer."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text):
        ids = self.tokenizer.tokenize(text)
        return {"ids": ids.to_tensor(), "text": self.tokenizer.detokenize(ids)}


SERVE = """
import json
import sys
import tensorflow as tf

texts = json.loads(sys.argv[2])
loaded = tf.saved_model.load(sys.argv[1])
eager = loaded.signatures["serving_default"](text=tf.constant(texts))
v1 = tf.compat.v1
with v1.Session(graph=tf.Graph()) as session:
    meta = v1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = meta.signature_def["serving_default"]
    names = {key: output.name for key, output in signature.outputs.items()}
    feed = {signature.inputs["text"].name: [text.encode() for text in texts]}
    served = session.run(names, feed)
for outputs in ({k: v.numpy() for k, v in eager.items()}, served):
    print(json.dumps({
        "ids": outputs["ids"].tolist(),
        "text": [text.decode() for text in outputs["text"]],
    }))
assert "keras_tfm" not in sys.modules

# Whoever loads the tokenizer needs no other package, either.
from keras_tfm.text.loading import load_tokenizer

tokenizer = load_tokenizer(sys.argv[1])
print(json.dumps(tokenizer.tokenize(texts).to_list()))
for name in ("tensorflow_text", "sentencepiece"):
    assert name not in sys.modules, name
"""


def test_a_saved_model_serves_where_only_tensorflow_is(tmp_path, fresh_process):
    theirs, ours = small()
    echo = Echo(ours)
    tf.saved_model.save(echo, tmp_path, signatures=echo.serve)
    size = sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file())
    assert size < 1_500_000
    ours.save(tmp_path)
    texts = ["the 猫 e\u0301 ＡＢ", "", "🐈 aaaa \x00"]  # noqa: RUF001
    ids = theirs.tokenize(texts)
    expected = {
        "ids": ids.to_tensor().numpy().tolist(),
        "text": [text.decode() for text in theirs.detokenize(ids).numpy()],
    }
    output = fresh_process(SERVE, tmp_path, json.dumps(texts))
    *served, rows = [json.loads(line) for line in output.splitlines()]
    assert served == [expected] * 2
    assert rows == ids.to_list()


def test_a_tokenizer_outlives_a_reset_of_the_runtime(tmp_path):
    theirs = SentencePieceTokenizer.train(["line 1", "a line 2"] * 3, 290)
    ours = BytePairTokenizer.from_sentencepiece(theirs)
    texts = ["a line", "猫"]
    expected = package(theirs).encode(texts)
    tf.saved_model.save(Echo(ours), tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert ours.tokenize(texts).to_list() == expected
    for disturb in (
        lambda: keras.utils.set_random_seed(7),
        keras.utils.clear_session,
    ):
        disturb()
        assert ours.tokenize(texts).to_list() == expected
        back = loaded.serve(tf.constant(texts))["text"].numpy()
        assert [text.decode() for text in back] == texts


def test_a_saved_tokenizer_comes_back_equal(tmp_path):
    _, ours = small()
    assert ours.save(tmp_path / "new").name == "byte_pair.model"
    loaded = BytePairTokenizer.load(tmp_path / "new")
    assert loaded.model_proto == ours.model_proto


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No `byte_pair\.model`"):
        BytePairTokenizer.load(tmp_path)


def test_the_kinds_of_tokenizer_in_a_folder_are_told_apart(tmp_path):
    theirs, ours = small()
    for tokenizer in (theirs, ours, CharacterTokenizer("ab")):
        folder = tmp_path / type(tokenizer).__name__
        tokenizer.save(folder)
        assert type(load_tokenizer(folder)) is type(tokenizer)
    ours.save(tmp_path / "SentencePieceTokenizer")
    with pytest.raises(
        ValueError, match=r"sentencepiece\.model` and `byte_pair\.model`"
    ):
        load_tokenizer(tmp_path / "SentencePieceTokenizer")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"model_type": "unigram"},
            r"byte-pair encoding.*Received: model type 1.*`Sentence.*\.train`",
        ),
        (
            {"byte_fallback": False, "vocab_size": 71},
            r"`byte_fallback`.*Received: 0 byte pieces",
        ),
        ({"unk_id": 0, "pad_id": 3}, "pad, start, end and unknown.*'<unk>'"),
        ({"user_defined_symbols": ["cat"]}, r"user-defined.*types \[4\]"),
        ({"control_symbols": ["<x>"]}, r"control or unused.*types \[3\]"),
        ({"treat_whitespace_as_suffix": True}, r"start of a word with U\+2581"),
    ],
)
def test_a_model_that_it_cannot_follow_is_an_error(options, message):
    proto = train(MADE_UP, **options)
    with pytest.raises(ValueError, match=message):
        BytePairTokenizer(proto)


def test_a_model_with_rules_for_decoding_is_an_error(tmp_path):
    rules = tmp_path / "rules.tsv"
    rules.write_text("61\t62\n")
    proto = train(MADE_UP, denormalization_rule_tsv=rules)
    with pytest.raises(ValueError, match="Received: denormalization rules"):
        BytePairTokenizer(proto)


def test_a_model_whose_merges_are_not_in_order_is_an_error():
    second, better = (struct.pack("<f", score) for score in (-1, 5))
    proto = train(MADE_UP).replace(second, better, 1)
    with pytest.raises(ValueError, match=r"order.*scores that do not fall"):
        BytePairTokenizer(proto)


def test_bytes_that_are_no_model_are_an_error():
    with pytest.raises(ValueError, match="Received 15 bytes that are none"):
        BytePairTokenizer(b"no model at all")


def test_another_kind_of_tokenizer_is_an_error():
    with pytest.raises(TypeError, match="must be a SentencePieceTokenizer"):
        BytePairTokenizer.from_sentencepiece(CharacterTokenizer("ab"))

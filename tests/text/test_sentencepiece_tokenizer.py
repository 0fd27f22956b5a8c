"""SentencePieceTokenizer against the sentencepiece package, line by line."""

import functools
import gzip
import io
import subprocess
import sys
import unicodedata
from pathlib import Path

import keras
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

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
    unicodedata.normalize("NFD", "é à ü ガ"),
    "zero\u200bwidth soft\u00adhyphen \ufeffbom",
    "nul\x00byte",
    "<s> </s> <pad> <unk> ▁",
    "x" * 3001,
]
BROKEN_TEXTS = [b"a\xff\xfeb", b"\xe7\x8c", b"\xed\xa0\x80 c", b"\xf0\x9f\x90"]


def read(name):
    opener = gzip.open if name.endswith(".gz") else open
    with opener(DATA / name, "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


@functools.cache
def corpus(name):
    """Return all lines of a corpus, or a made-up one where it is absent."""
    if not (DATA / CORPORA[name][0]).is_file():
        return MADE_UP
    return [line for part in CORPORA[name] for line in read(part)]


@functools.cache
def trained(name):
    lines = corpus(name)
    size = 5003 if len(lines) > 10_000 else 401
    return SentencePieceTokenizer.train(lines, size)


@functools.cache
def small():
    return SentencePieceTokenizer.train(MADE_UP, 401)


def reference(tokenizer):
    return sentencepiece.SentencePieceProcessor(
        model_proto=tokenizer.model_proto
    )


@pytest.mark.parametrize("name", sorted(CORPORA))
def test_every_line_gets_the_ids_that_sentencepiece_gives(name):
    tokenizer = trained(name)
    lines = corpus(name)
    ids = tokenizer.tokenize(lines)
    assert ids.dtype == tf.int32
    expected = reference(tokenizer).encode(lines)
    assert ids.to_list() == expected
    back = tokenizer.detokenize(ids).numpy().tolist()
    assert [text.decode() for text in back] == reference(tokenizer).decode(
        expected
    )


def test_chinese_and_english_lines_survive_the_way_to_ids_and_back():
    lines = corpus("tatoeba")[::23]
    tokenizer = SentencePieceTokenizer.train(
        lines, 6007, normalization="identity"
    )
    back = tokenizer.detokenize(tokenizer.tokenize(lines)).numpy()
    assert [text.decode() for text in back] == lines


@pytest.mark.parametrize("text", ODD_TEXTS, ids=ascii)
def test_odd_texts_get_the_ids_that_sentencepiece_gives(text):
    assert small().tokenize([text]).to_list() == [
        reference(small()).encode(text)
    ]


def test_broken_utf8_gets_the_ids_of_sentencepiece_and_harms_no_other_text():
    texts = [*BROKEN_TEXTS, b"the cat"]
    ids = small().tokenize(texts)
    assert ids.to_list() == [reference(small()).encode(text) for text in texts]
    assert small().detokenize(ids).numpy()[-1] == b"the cat"


def test_a_lone_surrogate_is_no_error():
    assert small().tokenize(["a\ud800b"]).shape[0] == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=13), min_size=1, max_size=5))
def test_any_text_gets_the_ids_of_sentencepiece(texts):
    assert small().tokenize(texts).to_list() == reference(small()).encode(texts)


@functools.cache
def lossless():
    return SentencePieceTokenizer.train(MADE_UP, 401, normalization="identity")


@settings(max_examples=60, deadline=None)
@given(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="▁"),
        max_size=13,
    )
)
def test_any_text_but_leading_spaces_survives_without_normalization(text):
    back = lossless().detokenize(lossless().tokenize([text])).numpy()[0]
    assert back.decode() == text.lstrip(" ")


def test_emoji_survive_the_default_normalization():
    text = "我们的猫 🐈 👍🏽 saw 3 trees"
    (back,) = small().detokenize(small().tokenize([text])).numpy()
    assert back.decode() == text


def test_full_width_letters_are_normalized_by_default_alone():
    text = "ＡＢＣ"  # noqa: RUF001
    (nfkc,) = small().detokenize(small().tokenize([text])).numpy()
    (same,) = lossless().detokenize(lossless().tokenize([text])).numpy()
    assert (nfkc.decode(), same.decode()) == ("ABC", text)


def test_special_ids_are_left_out_and_foreign_ids_read_as_unknown():
    row = small().tokenize(["the cat"]).to_list()[0]
    rows = [[1, *row, 2, 0, 0], [*row, 99_999, -1]]
    first, second = small().detokenize(rows).numpy()
    assert first == b"the cat"
    assert second.decode().count("\u2047") == 2


def test_no_rows_and_empty_rows_are_texts_too():
    assert small().tokenize([]).to_list() == []
    assert small().detokenize(tf.zeros((0, 5), tf.int32)).shape == (0,)
    empty = small().detokenize(tf.zeros((2, 0), tf.int32))
    assert empty.numpy().tolist() == [b"", b""]


def test_a_graph_and_a_data_pipeline_give_the_same_ids():
    texts = ["the cat", "", "猫🐈"]
    expected = reference(small()).encode(texts)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def in_graph(texts):
        return small().tokenize(texts)

    assert in_graph(tf.constant(texts)).to_list() == expected
    batches = tf.data.Dataset.from_tensor_slices(texts).batch(3)
    (rows,) = list(batches.map(small().tokenize))
    assert rows.to_list() == expected


class Echo(tf.Module):
    """A served function that holds a tokenizer."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(self, text):
        return self.tokenizer.detokenize(self.tokenizer.tokenize(text))


def test_a_saved_model_holds_the_tokenizer(tmp_path):
    tf.saved_model.save(Echo(small()), tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    texts = ["the 猫", "", "🐈"]
    back = loaded.serve(tf.constant(texts)).numpy()
    assert [text.decode() for text in back] == texts


@pytest.mark.parametrize(
    "disturb",
    [lambda: keras.utils.set_random_seed(7), keras.utils.clear_session],
    ids=["set_random_seed", "clear_session"],
)
def test_a_tokenizer_outlives_a_reset_of_the_runtime(tmp_path, disturb):
    # tensorflow/text issue 570: its resource goes with the kernel cache.
    texts = ["the cat", "猫🐈"]
    lines = [f"line {n} of its own" for n in range(5)]
    tokenizer = SentencePieceTokenizer.train(lines, 300)
    expected = reference(tokenizer).encode(texts)
    pipeline = (
        tf.data.Dataset.from_tensor_slices(texts)
        .batch(2)
        .map(tokenizer.tokenize)
    )
    in_graph = tf.function(
        tokenizer.tokenize, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    in_graph(tf.constant(texts))
    tf.saved_model.save(Echo(tokenizer), tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    disturb()
    assert tokenizer.tokenize(texts).to_list() == expected
    assert in_graph(tf.constant(texts)).to_list() == expected
    assert next(iter(pipeline)).to_list() == expected
    back = loaded.serve(tf.constant(texts)).numpy()
    assert [text.decode() for text in back] == texts


def test_two_models_never_mix():
    first, second = (
        SentencePieceTokenizer.train([text] * 3, 280)
        for text in ("abab cd", "cdcd ab")
    )
    for tokenizer in (first, second, first):
        ids = tokenizer.tokenize(["abab cdcd"]).to_list()
        assert ids == reference(tokenizer).encode(["abab cdcd"])
    assert first.model_proto != second.model_proto


LOAD_IN_A_SESSION = """
import sys
import tensorflow as tf
import tensorflow_text
v1 = tf.compat.v1
with v1.Session(graph=tf.Graph()) as session:
    meta = v1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = meta.signature_def["serving_default"]
    feed = {signature.inputs["text"].name: ["the cat 猫".encode(), b""]}
    (output,) = signature.outputs.values()
    print(ascii([text.decode() for text in session.run(output.name, feed)]))
"""


def test_a_saved_model_loads_in_a_session(tmp_path):
    echo = Echo(small())
    tf.saved_model.save(echo, tmp_path, signatures=echo.serve)
    done = subprocess.run(
        [sys.executable, "-c", LOAD_IN_A_SESSION, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "['the cat \\u732b', '']"


def test_training_twice_gives_the_same_bytes():
    again = SentencePieceTokenizer.train(iter(MADE_UP), 401)
    assert again.model_proto == small().model_proto


def test_the_special_ids_are_the_agreed_ones():
    pieces = small().pieces([0, 1, 2, 3, 4, 259, 99_999, -1])
    assert pieces[:4] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert pieces[4:] == ["<0x00>", "<0xFF>", "<unk>", "<unk>"]


def test_a_text_too_small_gives_fewer_pieces_and_says_so(caplog):
    tokenizer = SentencePieceTokenizer.train(["aa ab"] * 3, 7001)
    assert 260 < tokenizer.vocabulary_size < 300
    assert "7001 were asked for" in caplog.text
    ids = tokenizer.tokenize(["aa ab 猫"])
    assert tokenizer.detokenize(ids).numpy()[0].decode() == "aa ab 猫"


def test_long_lines_are_learned_from_too():
    tokenizer = SentencePieceTokenizer.train(["qx" * 9001], 301)
    assert any("qx" in piece for piece in tokenizer.pieces(range(260, 301)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": "abc"}, r"Received one string.*\[texts\]"),
        ({"texts": []}, "no text to train on"),
        ({"texts": ["", ""]}, "no text to train on"),
        ({"vocabulary_size": 260}, "at least 261.*vocabulary_size=260"),
        (
            {"vocabulary_size": 262},
            "at least 267 for these texts.*=262.*`character_coverage`",
        ),
        ({"vocabulary_size": 0}, "whole number"),
        ({"normalization": "nfkc"}, "Did you mean 'nmt_nfkc'"),
        ({"character_coverage": 1.5}, r"in \(0, 1\].*1\.5"),
    ],
)
def test_wrong_training_arguments_are_named(arguments, message):
    given = {"texts": ["abc def"], "vocabulary_size": 300, **arguments}
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(**given)


@pytest.mark.parametrize("model", [b"", b"no model at all"])
def test_bytes_that_are_no_model_are_an_error(model):
    with pytest.raises(ValueError, match="bytes of a SentencePiece model"):
        SentencePieceTokenizer(model)


def test_a_model_with_other_special_ids_is_an_error():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abc def"] * 3),
        model_writer=model,
        vocab_size=12,
        model_type="bpe",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(ValueError, match=r"\(0, 1, 2, 3\).*\(-1, 1, 2, 0\)"):
        SentencePieceTokenizer(model.getvalue())


def test_a_saved_tokenizer_comes_back_equal(tmp_path):
    assert small().save(tmp_path / "new").name == "sentencepiece.model"
    loaded = SentencePieceTokenizer.load(tmp_path / "new")
    assert loaded.model_proto == small().model_proto


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No `sentencepiece\.model`"):
        SentencePieceTokenizer.load(tmp_path)

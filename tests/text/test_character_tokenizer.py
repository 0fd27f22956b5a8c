"""CharacterTokenizer against plain Python, and in a SavedModel."""

import subprocess
import sys

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_tfm.text.character_tokenizer import CharacterTokenizer

CHARACTERS = "z猫a🐈é \x00"


def by_hand(text):
    """Give the ids that a dictionary of the characters gives."""
    table = {c: 4 + i for i, c in enumerate(CHARACTERS)}
    return [table.get(c, 3) for c in text]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet=CHARACTERS + "qñ狗", max_size=11), max_size=5))
def test_ids_are_those_of_a_dictionary(texts):
    tokenizer = CharacterTokenizer(CHARACTERS)
    ids = tokenizer.tokenize(texts)
    assert ids.dtype == tf.int32
    assert ids.to_list() == [by_hand(text) for text in texts]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet=CHARACTERS, max_size=11), max_size=5))
def test_known_text_survives_the_way_to_ids_and_back(texts):
    tokenizer = CharacterTokenizer(CHARACTERS)
    back = tokenizer.detokenize(tokenizer.tokenize(texts))
    assert [text.decode() for text in back.numpy()] == texts


def test_special_ids_are_left_out_and_foreign_ids_read_as_unknown():
    tokenizer = CharacterTokenizer("ab")
    back = tokenizer.detokenize(
        tf.constant([[1, 4, 5, 2, 0], [6, -1, 3, 4, 2]])
    )
    assert [text.decode() for text in back.numpy()] == [
        "ab",
        "\ufffd" * 3 + "a",
    ]


def test_broken_utf8_becomes_unknown_and_harms_no_other_text():
    ids = CharacterTokenizer("ab").tokenize(
        tf.constant([b"a\xffb", b"\xe7\x8c", b"", b"ba"])
    )
    rows = ids.to_list()
    assert rows[0] == [4, 3, 5]
    assert set(rows[1]) == {3}
    assert rows[2:] == [[], [5, 4]]


def test_a_graph_and_a_data_pipeline_give_the_same_ids():
    tokenizer = CharacterTokenizer("ab")
    texts = ["ab", "", "ca"]
    expected = [[4, 5], [], [3, 4]]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def in_graph(texts):
        return tokenizer.tokenize(texts)

    assert in_graph(tf.constant(texts)).to_list() == expected
    batches = tf.data.Dataset.from_tensor_slices(texts).batch(3)
    (rows,) = list(batches.map(tokenizer.tokenize))
    assert rows.to_list() == expected


def test_training_sorts_the_characters_and_skips_lone_surrogates():
    tokenizer = CharacterTokenizer.train(["猫b", "a\ud800b"])
    assert tokenizer.characters == ("a", "b", "猫")
    assert tokenizer.vocabulary_size == 7


def test_pieces_are_readable():
    pieces = CharacterTokenizer("ab").pieces([0, 1, 2, 3, 4, 5, 99, -1])
    assert pieces == [
        *("<pad>", "<s>", "</s>", "<unk>", "a", "b", "<unk>", "<unk>")
    ]


def test_a_saved_tokenizer_comes_back_equal(tmp_path):
    saved = CharacterTokenizer(CHARACTERS)
    assert saved.save(tmp_path / "new").name == "characters.json"
    loaded = CharacterTokenizer.load(tmp_path / "new")
    assert loaded.characters == saved.characters


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "characters.json").write_text("[]")
    with pytest.raises(ValueError, match=r"characters\.json is not a file"):
        CharacterTokenizer.load(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No `characters\.json`"):
        CharacterTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("characters", "message"),
    [
        ("", "at least one character"),
        (["ab"], "single characters.*'ab'"),
        (["\ud800"], "single characters"),
        ("aba", "distinct.*'a' 2 times"),
    ],
)
def test_wrong_characters_are_named(characters, message):
    with pytest.raises(ValueError, match=message):
        CharacterTokenizer(characters)


def test_training_needs_a_list_with_text():
    with pytest.raises(ValueError, match="one string"):
        CharacterTokenizer.train("abc")
    with pytest.raises(ValueError, match="no character"):
        CharacterTokenizer.train(["", ""])


class Echo(tf.Module):
    """A served function that holds a tokenizer."""

    def __init__(self):
        super().__init__()
        self.tokenizer = CharacterTokenizer("cab猫")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text):
        ids = self.tokenizer.tokenize(text)
        return {
            "ids": ids.to_tensor(),
            "text": self.tokenizer.detokenize(ids),
        }


LOAD_IN_A_SESSION = """
import sys
import tensorflow as tf
v1 = tf.compat.v1
with v1.Session(graph=tf.Graph()) as session:
    meta = v1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = meta.signature_def["serving_default"]
    feed = {signature.inputs["text"].name: ["a猫?".encode(), b""]}
    names = [signature.outputs[key].name for key in ("ids", "text")]
    ids, text = session.run(names, feed)
loaded = tf.saved_model.load(sys.argv[1])
again = loaded.signatures["serving_default"](text=tf.constant(["a猫?", ""]))
assert again["ids"].numpy().tolist() == ids.tolist()
assert "tensorflow_text" not in sys.modules
print(ids.tolist(), ascii([t.decode() for t in text.tolist()]))
"""


def test_a_saved_model_loads_with_tensorflow_alone_and_in_a_session(tmp_path):
    echo = Echo()
    tf.saved_model.save(echo, tmp_path, signatures=echo.serve)
    done = subprocess.run(
        [sys.executable, "-c", LOAD_IN_A_SESSION, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    expected = "[[5, 7, 3], [0, 0, 0]] ['a\\u732b\\ufffd', '']"
    assert done.stdout.strip() == expected

"""Another program runs the exported model: the same scores, the same tokens."""

import functools
import sys

import ctranslate2
import keras
import numpy as np
import pytest
from models.transformer.made import fresh
from models.transformer.made import logits
from models.transformer.made import shaken

from keras_tfm.export.ctranslate2 import QUANTIZATIONS
from keras_tfm.export.ctranslate2 import write_ctranslate2
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.layers import gelu_tanh
from keras_tfm.models import Transformer
from keras_tfm.tasks.decoding import make_writer
from keras_tfm.tasks.tokenizing import end_rows
from keras_tfm.tasks.tokenizing import pad_rows
from keras_tfm.tasks.tokenizing import token_rows
from keras_tfm.text.character_tokenizer import CharacterTokenizer
from keras_tfm.text.sentencepiece_tokenizer import SentencePieceTokenizer

MAX_SOURCE, MAX_TARGET = 7, 11
SOURCE, TARGET = CharacterTokenizer("abcdefghi"), CharacterTokenizer("abcdefg")
SOURCES = ["defgfa", "cb", "abac?"]
TARGETS = ["agfbcdefba", "d", "ccb?"]

# Each with a seed whose greedy translations are of several tokens.
KINDS = {
    "all-pre-relu": (0, "all", True, {"activation": "relu"}),
    "all-post-gelu-bias-paper": (
        13,
        "all",
        False,
        {
            "activation": "gelu",
            "use_bias": True,
            "position_layout": "interleaved",
            "position_denominator": "paper",
        },
    ),
    "decoder-post-gelu_tanh-deeper": (
        0,
        "decoder",
        False,
        {
            "activation": gelu_tanh,
            "num_decoder_layers": 2,
            "position_denominator": "paper",
        },
    ),
    "decoder-pre-silu-bias-interleaved": (
        9,
        "decoder",
        True,
        {
            "activation": "silu",
            "use_bias": True,
            "position_layout": "interleaved",
        },
    ),
    "none-pre-gelu_tanh-bias-epsilon": (
        13,
        None,
        True,
        {"activation": gelu_tanh, "use_bias": True, "layer_norm_epsilon": 0.03},
    ),
    "none-post-relu-shallower": (
        2,
        None,
        False,
        {"activation": "relu", "num_layers": 2, "num_decoder_layers": 1},
    ),
}
ANY = "none-pre-gelu_tanh-bias-epsilon"


@functools.cache
def made(kind):
    seed, ties, pre_norm, arguments = KINDS[kind]
    model = fresh(ties, pre_norm, **{"num_layers": 1, **arguments})
    return never_padding(shaken(model, seed))


def table_of(model):
    """Return the softmax's weight and whether a row of it is a token."""
    if model.project is None:
        return model.target_embedding.embeddings, True
    return model.project.kernel, False


def never_padding(model):
    """Give padding the mean logit of the others, which is never the best."""
    weight, by_row = table_of(model)
    table = keras.ops.convert_to_numpy(weight).copy()
    rows = table if by_row else table.T
    rows[0] = rows[1:].mean(axis=0)
    weight.assign(table)
    return model


def tokenizers(model):
    shared = model.arguments["tie_embeddings"] == "all"
    return (TARGET if shared else SOURCE), TARGET


def written(model, folder, **kwargs):
    """Export a model and load it with `ctranslate2`."""
    write_ctranslate2(
        model, *tokenizers(model), folder, MAX_SOURCE, MAX_TARGET, **kwargs
    )
    return loaded(folder)


def loaded(folder, **kwargs):
    return ctranslate2.Translator(
        str(folder), inter_threads=1, intra_threads=1, **kwargs
    )


def pieces(texts):
    return [list(text) for text in texts]


def greedy(translator, sources, **kwargs):
    return translator.translate_batch(
        sources,
        **{
            "beam_size": 1,
            "length_penalty": 0,
            "min_decoding_length": 0,
            "max_decoding_length": MAX_TARGET,
            "max_input_length": 0,
            "return_scores": True,
            "return_end_token": True,
            **kwargs,
        },
    )


def padded(tokenizer, texts, length):
    rows = end_rows(token_rows(tokenizer, texts), 2)
    return pad_rows(rows, len(rows), length, 0)


def our_scores(model, sources, targets):
    """Return the log-probability of each token of each target, its end too."""
    source_tokenizer, target_tokenizer = tokenizers(model)
    source = padded(source_tokenizer, sources, 13)
    rows = token_rows(target_tokenizer, targets)
    labels = padded(target_tokenizer, targets, MAX_TARGET)
    read = np.pad(labels, ((0, 0), (1, 0)), constant_values=1)[:, :-1]
    scores = logits(model, source, np.where(read == 2, 0, read))
    scores = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    scores = np.take_along_axis(scores, labels[..., None], axis=-1)[..., 0]
    return [
        row[: len(tokens) + 1] for row, tokens in zip(scores, rows, strict=True)
    ]


def our_ids(model, source_tokenizer, sources, source_length=13):
    """Return what our own greedy decoder writes, and its scores."""
    source = keras.ops.array(padded(source_tokenizer, sources, source_length))
    ids, scores = make_writer(model, GreedyGenerator(MAX_TARGET))(source)
    return [keras.ops.convert_to_numpy(found) for found in (ids, scores)]


@functools.cache
def expected_scores(kind):
    return our_scores(made(kind), SOURCES, TARGETS)


@functools.cache
def our_greedy(kind):
    source_tokenizer, target_tokenizer = tokenizers(made(kind))
    ids, scores = our_ids(made(kind), source_tokenizer, SOURCES)
    return [target_tokenizer.pieces(row[row != 0]) for row in ids], scores


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_has_the_score_that_the_model_gives_it(kind, tmp_path):
    translator = written(made(kind), tmp_path)
    found = translator.score_batch(pieces(SOURCES), pieces(TARGETS))
    expected = expected_scores(kind)
    for row, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(row.log_probs, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_greedy_translations_and_their_scores_are_ours(kind, tmp_path):
    found = greedy(written(made(kind), tmp_path), pieces(SOURCES))
    tokens, scores = our_greedy(kind)
    assert [row.hypotheses[0] for row in found] == tokens
    np.testing.assert_allclose(
        [row.scores[0] for row in found], scores, atol=1e-5
    )


def test_the_greedy_translations_are_not_all_of_one_token():
    # Else the test before would compare little.
    written_tokens = [our_greedy(kind)[0] for kind in KINDS]
    assert all(
        len({piece for row in rows for piece in row}) > 2
        for rows in written_tokens
    )
    assert any(row[-1] == "</s>" for rows in written_tokens for row in rows)


def test_the_end_is_added_to_a_source_and_an_empty_one_stays_empty(tmp_path):
    translator = written(made(ANY), tmp_path)
    [row, empty] = greedy(translator, [list("cb"), []])
    assert row.hypotheses == greedy(translator, [list("cb")])[0].hypotheses
    assert (empty.hypotheses, empty.scores) == ([[]], [0.0])


@pytest.mark.parametrize(
    ("max_target_length", "longest_target"), [(11, 256), (257, 257)]
)
def test_the_greatest_lengths_pass_and_no_longer(
    max_target_length, longest_target, tmp_path
):
    model = made(ANY)
    folder = tmp_path / "model"
    write_ctranslate2(
        model, SOURCE, TARGET, folder, MAX_SOURCE, max_target_length
    )
    translator = loaded(folder)
    source, target = ["a" * (MAX_SOURCE - 1)], ["b" * (MAX_TARGET - 1)]
    [found] = translator.score_batch(pieces(source), pieces(target))
    [expected] = our_scores(model, source, target)
    np.testing.assert_allclose(found.log_probs, expected, atol=1e-5)
    lengths = dict.fromkeys(
        ("min_decoding_length", "max_decoding_length"), longest_target
    )
    for beam_size in (1, 4):
        [row] = greedy(
            translator, pieces(source), beam_size=beam_size, **lengths
        )
        assert len(row.hypotheses[0]) == longest_target
    with pytest.raises(RuntimeError, match=f"positions >= {MAX_SOURCE}"):
        greedy(translator, [list("a" * MAX_SOURCE)])
    lengths = dict.fromkeys(lengths, longest_target + 1)
    with pytest.raises(RuntimeError, match=f"positions >= {longest_target}"):
        greedy(translator, pieces(source), **lengths)


def test_without_a_length_it_writes_as_far_as_its_own_limit(tmp_path):
    translator = written(made(ANY), tmp_path)
    # Nothing but the length may end a translation.
    [row] = translator.translate_batch(
        [list("abc")], suppress_sequences=[["</s>"]], beam_size=1
    )
    assert len(row.hypotheses[0]) == 256


def test_a_source_is_cut_where_the_caller_says_and_keeps_its_end(tmp_path):
    translator = written(made(ANY), tmp_path)
    [cut] = greedy(translator, [list("abcdefghi")], max_input_length=MAX_SOURCE)
    [short] = greedy(translator, [list("abcdefghi"[: MAX_SOURCE - 1])])
    assert cut.scores == short.scores


def test_padding_may_be_written_unless_it_is_forbidden(tmp_path):
    model = fresh(None, num_layers=1)
    weight, _ = table_of(model)
    kernel = keras.ops.convert_to_numpy(weight).copy()
    # The favourite of some position: the opposite of another token.
    kernel[:, 0] = -3 * kernel[:, 5]
    weight.assign(kernel)
    translator = written(model, tmp_path)
    sources = pieces(["abc", "ihg", "e", "db"])
    free = greedy(translator, sources)
    forbidden = greedy(translator, sources, suppress_sequences=[["<pad>"]])
    assert any("<pad>" in row.hypotheses[0] for row in free)
    assert not any("<pad>" in row.hypotheses[0] for row in forbidden)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_each_quantization_loads_and_scores_nearly_alike(
    quantization, tmp_path
):
    kind = "decoder-pre-silu-bias-interleaved"
    model = made(kind)
    before = [weight.numpy().copy() for weight in model.weights]
    written(model, tmp_path, quantization=quantization)
    # What the file holds. The integer kernels that ctranslate2 takes by itself
    # on AVX2 without VNNI are off by whole units for a model this small.
    translator = loaded(tmp_path, compute_type="float32")
    found = translator.score_batch(pieces(SOURCES), pieces(TARGETS))
    expected = expected_scores(kind)
    for row, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(row.log_probs, wanted, atol=0.3)
    for weight, old in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), old)


def test_fewer_bits_make_a_smaller_file_and_a_tied_table_is_stored_once(
    tmp_path,
):
    sizes = {"hidden_dim": 64, "num_layers": 1, "intermediate_dim": 67}
    model = fresh("all", **sizes)

    size = {}
    for quantization in (None, "float16", "int8"):
        folder = tmp_path / str(quantization)
        written(model, folder, quantization=quantization)
        size[quantization] = (folder / "model.bin").stat().st_size
    # The positions, which are not quantized, and the names of the weights.
    positions = 4 * 64 * (MAX_SOURCE + 256)
    others = positions + 4000
    assert 0 < size[None] - 4 * model.count_params() < others
    assert size["float16"] < 0.6 * size[None]
    assert size["int8"] - positions < 0.4 * (size[None] - positions)


def test_a_model_of_16_bits_is_written_in_32(tmp_path):
    model = fresh("decoder", num_layers=1, dtype="bfloat16")
    translator = written(model, tmp_path)
    found = translator.score_batch(pieces(SOURCES), pieces(TARGETS))
    expected = our_scores(
        same_in_float32(model), SOURCES, TARGETS
    )  # Of the same rounded weights.
    for row, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(row.log_probs, wanted, atol=1e-5)


def same_in_float32(model):
    other = Transformer.from_config({**model.get_config(), "dtype": "float32"})
    for weight, source in zip(other.weights, model.weights, strict=True):
        weight.assign(keras.ops.cast(source, "float32"))
    return other


@functools.cache
def subwords(language):
    texts = {
        "en": ["a cat sat on the mat", "the dog ran to a cat"],
        "de": ["eine Katze sass auf der Matte", "der Hund lief zur Katze"],
    }
    return SentencePieceTokenizer.train(texts[language] * 3, 307)


def subword_model(source, target):
    sizes = {"num_layers": 1, "hidden_dim": 6, "intermediate_dim": 17}
    model = Transformer(
        source.vocabulary_size,
        target.vocabulary_size,
        num_heads=2,
        tie_embeddings=None,
        **sizes,
    )
    return never_padding(shaken(model, 4))


def test_two_small_packages_translate_without_tensorflow(
    tmp_path, fresh_process
):
    source, target = subwords("en"), subwords("de")
    model = subword_model(source, target)
    folder = tmp_path / "model"
    write_ctranslate2(model, source, target, folder, 37, MAX_TARGET)
    # Known words, characters to be spelled in bytes, and names of tokens.
    texts = ["a cat ran", "the 貓 sat: ξ", "<s> dog </s><unk> <0x41>"]
    lines = fresh_process(
        """
        import sys

        import ctranslate2
        import sentencepiece

        folder, *texts = sys.argv[1:]
        source, target = (
            sentencepiece.SentencePieceProcessor(f"{folder}/{side}.spm")
            for side in ("source", "target")
        )
        results = ctranslate2.Translator(folder).translate_batch(
            source.encode(texts, out_type=str),
            beam_size=1,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=11,
        )
        for result in results:
            print(ascii(target.decode(result.hypotheses[0])))
        print("tensorflow" in sys.modules)
        """,
        folder,
        *texts,
    ).splitlines()
    ids, _ = our_ids(model, source, texts, source_length=37)
    expected = [text.decode() for text in target.detokenize(ids).numpy()]
    assert lines == [*map(ascii, expected), "False"]
    assert len(set(expected)) == 3
    assert (folder / "source.spm").read_bytes() == source.model_proto
    assert (folder / "target.spm").read_bytes() == target.model_proto


def test_a_joint_tokenizer_is_there_under_both_names_and_characters_are_not(
    tmp_path,
):
    joint = subwords("en")
    model = subword_model(joint, joint)
    write_ctranslate2(model, joint, joint, tmp_path / "joint", 7, 7)
    assert {path.name for path in (tmp_path / "joint").iterdir()} == {
        "config.json",
        "model.bin",
        "shared_vocabulary.json",
        "source.spm",
        "target.spm",
    }
    written(made(ANY), tmp_path / "characters")
    assert not list((tmp_path / "characters").glob("*.spm"))


def test_a_new_folder_is_made_with_its_parents_and_an_empty_one_is_used(
    tmp_path,
):
    written(made(ANY), tmp_path / "a" / "b")
    (tmp_path / "c").mkdir()
    written(made(ANY), tmp_path / "c")


def test_what_is_there_is_never_overwritten(tmp_path):
    model = made(ANY)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something already; give a new"):
        written(model, tmp_path)
    with pytest.raises(ValueError, match=r"mine\.txt is a file; give a folder"):
        written(model, tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"quantization": "int9"},
            "Received: quantization='int9'.*mean 'int8'",
        ),
        ({"max_source_length": 0}, "`max_source_length` must be a whole"),
        ({"max_target_length": 2.5}, "`max_target_length` must be a whole"),
        (
            {"source_tokenizer": TARGET},
            "source tokenizer has 11 ids, the model 13",
        ),
        (
            {"target_tokenizer": SOURCE},
            "target tokenizer has 13 ids, the model 11",
        ),
    ],
)
def test_a_wrong_argument_is_an_error_and_writes_nothing(
    arguments, message, tmp_path
):
    folder = tmp_path / "model"
    arguments = {
        "model": made(ANY),
        "source_tokenizer": SOURCE,
        "target_tokenizer": TARGET,
        "folder": folder,
        "max_source_length": 7,
        "max_target_length": 7,
        **arguments,
    }
    with pytest.raises(ValueError, match=message):
        write_ctranslate2(**arguments)
    assert not folder.exists()


class Renamed(CharacterTokenizer):
    """A tokenizer of the same size whose pieces read otherwise."""

    def __init__(self, characters, names):
        super().__init__(characters)
        self.names = names

    def pieces(self, ids):
        return [self.names.get(piece, piece) for piece in super().pieces(ids)]


def test_the_names_of_the_special_tokens_are_those_of_the_tokenizers(tmp_path):
    model = made(ANY)
    names = {"<s>": "[S]", "</s>": "[E]", "<unk>": "[U]"}
    source, target = Renamed("abcdefghi", names), Renamed("abcdefg", names)
    write_ctranslate2(model, source, target, tmp_path, 7, 11)
    found = loaded(tmp_path).score_batch(pieces(SOURCES), pieces(TARGETS))
    expected = expected_scores(ANY)
    for row, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(row.log_probs, wanted, atol=1e-5)


def test_a_model_that_the_format_cannot_hold_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds the activations relu, gelu"):
        written(
            fresh(None, num_layers=1, activation="tanh"), tmp_path / "model"
        )
    with pytest.raises(TypeError, match="must be a `Transformer`"):
        write_ctranslate2(
            keras.Sequential(), SOURCE, TARGET, tmp_path / "model", 7, 7
        )
    assert not (tmp_path / "model").exists()


def test_a_quantized_model_is_refused(tmp_path):
    model = fresh(None, num_layers=1)
    model.decoder.blocks[0].feed_forward.sublayer.widen.quantize("int8")
    with pytest.raises(ValueError, match=r"kernel` holds int8.*before"):
        written(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_missing_package_is_named_with_the_way_to_get_it(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(ImportError, match=r"pip install 'keras_tfm\[export\]'"):
        written(made(ANY), tmp_path / "model")

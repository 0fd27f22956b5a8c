"""The translator as a whole: learn, translate, save, load, export, resume."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from tasks.eagerly import Eagerly

from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.translation import Translator
from keras_tfm.text.character_tokenizer import CharacterTokenizer

SIZES = {
    "num_layers": 1,
    "hidden_dim": 32,
    "intermediate_dim": 32,
    "num_heads": 2,
    "dropout": 0.0,
}
SETTINGS = TrainingSettings(
    tokens_per_batch=256,
    max_shapes=1,
    peak=0.01,
    warmup_steps=20,
    decay_steps=400,
    label_smoothing=0.0,
)


def make_pairs(count, seed=0):
    """Spell digits as letters: `314` is `dbe`."""
    rng = np.random.default_rng(seed)
    sources = [
        "".join(map(str, rng.integers(0, 8, rng.integers(1, 6))))
        for _ in range(count)
    ]
    targets = ["".join("abcdefgh"[int(c)] for c in text) for text in sources]
    return SentencePairs(sources=sources, targets=targets, name="digits")


def make_translator(seed=1, **arguments):
    keras.utils.set_random_seed(seed)
    return Translator.from_pairs(
        make_pairs(500),
        tokenizer="characters",
        joint=False,
        max_target_length=11,
        source_lengths=(7, 13),
        **{**SIZES, **arguments},
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    translator = make_translator()
    folder = tmp_path_factory.mktemp("training")
    logs = translator.fit(make_pairs(500), SETTINGS, steps=400, folder=folder)
    assert logs["steps"] == 400
    translator.save(folder)
    return translator, folder


def test_it_learns_and_translates_what_it_has_not_seen(trained):
    translator, _ = trained
    unseen = make_pairs(100, seed=9)
    (score,) = translator.evaluate(unseen, metric="exact")
    assert score.value > 95


def test_an_empty_text_gives_an_empty_translation(trained):
    translator, _ = trained
    assert translator.translate(["", "314"]) == ["", "dbe"]
    assert translator.translate([]) == []


def test_a_translation_does_not_depend_on_its_company(trained):
    translator, _ = trained
    texts = list(make_pairs(70, seed=4).sources)
    together = translator.translate(texts)
    alone = [translator.translate([text])[0] for text in texts[:5]]
    assert together[:5] == alone


def test_names_the_text_that_is_too_long(trained):
    translator, _ = trained
    with pytest.raises(ValueError, match="Text 2 takes 14 tokens"):
        translator.translate(["31", "1" * 13])


def test_refuses_a_single_string(trained):
    with pytest.raises(ValueError, match="takes a list of texts"):
        trained[0].translate("314")


def test_bleu_comes_with_chrf_and_signatures(trained):
    scores = trained[0].evaluate(make_pairs(20, seed=5))
    assert [score.name for score in scores] == ["BLEU", "chrF"]
    assert all("nrefs:1" in score.signature for score in scores)


def test_attention_names_its_tokens_and_sums_to_one(trained):
    record = trained[0].attention("31")
    assert record["source_tokens"] == ["3", "1", "</s>"]
    assert record["target_tokens"] == ["d", "b", "</s>"]
    assert record["cross"].shape == (1, 2, 3, 3)
    for name in ("encoder", "decoder", "cross"):
        np.testing.assert_allclose(record[name].sum(-1), 1, atol=1e-5)
    # Causal: the first position sees the start mark alone.
    np.testing.assert_allclose(record["decoder"][:, :, 0, 0], 1, atol=1e-6)


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    trained[0].export(folder)
    return folder


# One process for all ways to use what was saved, because to start one takes
# longer than to use it. The package comes last: the others do without it.
IN_A_NEW_PROCESS = """
import contextlib, io, json, sys
import tensorflow as tf

exported, saved = sys.argv[1:]
texts = ["314", "", "7"]
found = {}

from tensorflow.python.tools import saved_model_cli
sys.argv = ["saved_model_cli", "run", "--dir", exported,
            "--tag_set", "serve", "--signature_def", "serving_default",
            "--input_exprs", 'text=["314"]']
with contextlib.redirect_stdout(io.StringIO()) as printed:
    try:
        saved_model_cli.main()
    except SystemExit as end:
        assert not end.code, end.code
found["saved_model_cli"] = printed.getvalue()

with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    graph = tf.compat.v1.saved_model.load(session, ["serve"], exported)
    signature = graph.signature_def["serving_default"]
    text = session.run(
        signature.outputs["text"].name,
        {signature.inputs["text"].name: texts},
    )
found["session"] = [t.decode() for t in text]

loaded = tf.saved_model.load(exported)
serve = loaded.signatures["serving_default"]
answers = [t.decode() for t in serve(text=tf.constant(texts))["text"].numpy()]
assert serve(text=tf.constant([], tf.string))["text"].shape == (0,)
many = serve(text=tf.constant(texts * 30))["text"].numpy()
assert [t.decode() for t in many] == answers * 30
found["loader"] = answers

assert "keras_tfm" not in sys.modules

from keras_tfm.tasks.translation import Translator
found["translator"] = Translator.load(saved).translate(texts)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers(trained, exported, shared_process):
    printed = shared_process(IN_A_NEW_PROCESS, exported, trained[1])
    return json.loads(printed.splitlines()[-1])


def test_a_saved_translator_says_the_same_in_a_new_process(trained, answers):
    assert answers["translator"] == trained[0].translate(["314", "", "7"])


@pytest.mark.parametrize("way", ["loader", "session"])
def test_the_saved_model_says_the_same_where_only_tensorflow_is_known(
    trained, answers, way
):
    assert answers[way] == trained[0].translate(["314", "", "7"])


def test_the_saved_model_runs_under_saved_model_cli(answers):
    assert "dbe" in answers["saved_model_cli"]


def test_the_saved_model_holds_each_weight_once(trained, exported):
    size = sum(
        file.stat().st_size for file in (exported / "variables").iterdir()
    )
    weights = sum(
        np.prod(variable.shape) * 4 for variable in trained[0].model.weights
    )
    assert size < 1.2 * weights + 10_000


@pytest.mark.slow
def test_a_resumed_training_equals_one_without_a_break(tmp_path):
    pairs = make_pairs(200)
    whole = make_translator(dropout=0.1)
    whole.fit(pairs, SETTINGS, steps=12)

    first = make_translator(dropout=0.1)
    first.fit(pairs, SETTINGS, steps=5, folder=tmp_path)
    second = make_translator(seed=99, dropout=0.1)
    logs = second.fit(pairs, SETTINGS, steps=12, folder=tmp_path, resume=True)
    assert logs["steps"] == 12
    for mine, theirs in zip(
        whole.model.weights, second.model.weights, strict=True
    ):
        np.testing.assert_array_equal(mine, theirs, err_msg=mine.path)


def test_a_finished_training_has_nothing_to_resume(trained, tmp_path):
    translator = make_translator()
    translator.fit(
        make_pairs(50),
        SETTINGS,
        steps=2,
        folder=tmp_path,
        callbacks=[Eagerly()],
    )
    logs = translator.fit(
        make_pairs(50), SETTINGS, steps=2, folder=tmp_path, resume=True
    )
    assert logs == {"steps": 2}


def test_a_training_needs_an_end_and_a_folder_to_resume():
    translator = make_translator()
    with pytest.raises(ValueError, match="A training needs an end"):
        translator.fit(make_pairs(5), SETTINGS)
    with pytest.raises(ValueError, match="give the `folder`"):
        translator.fit(make_pairs(5), SETTINGS, steps=1, resume=True)


def test_refuses_a_model_of_another_vocabulary():
    tokenizer = CharacterTokenizer.train(["abc"])
    model = Transformer(9, **SIZES)
    with pytest.raises(ValueError, match="The source tokenizer has 7 ids"):
        Translator(model, tokenizer, tokenizer)


def test_a_preset_that_shares_a_table_gives_way_to_two_vocabularies():
    translator = make_translator(preset="transformer_tiny", **SIZES)
    assert translator.model.arguments["tie_embeddings"] == "decoder"
    with pytest.raises(ValueError, match="needs one vocabulary"):
        make_translator(preset="transformer_tiny", tie_embeddings="all")


def test_names_an_unknown_preset():
    with pytest.raises(ValueError, match="Did you mean 'transformer_tiny'"):
        make_translator(preset="transformer_tini")


def test_the_log_of_tensorflow_has_no_sparse_gradients(trained):
    translator, _ = trained
    with tf.GradientTape() as tape:
        ids = np.array([[5, 5, 2]], "int32")
        total = tf.reduce_sum(
            translator.model({"source_ids": ids, "target_ids": ids})
        )
    gradients = tape.gradient(
        total, [v.value for v in translator.model.trainable_variables]
    )
    assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)

"""A SavedModel in other programs: a C client, a server that runs for long."""

import json
import pathlib
import subprocess

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.generation import BeamSearchGenerator
from keras_tfm.tasks.translation import Translator

CLIENT = pathlib.Path(__file__).parents[2] / "examples/c_client/translate.c"
WORDS = ["red fox", "lazy dog", "a dog", "the quick fox", "dog"]


@pytest.fixture(scope="module")
def translator():
    keras.utils.set_random_seed(7)
    made = Translator.from_pairs(
        SentencePairs(WORDS * 5, WORDS * 5, "words"),
        vocabulary_size=290,
        max_target_length=5,
        source_lengths=(11,),
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
    )
    made.batch_sizes = (1, 3)
    made.generator = BeamSearchGenerator(5, 2)
    return made


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("core")
    translator.export(folder, tokenizer_ops="core")
    return folder


# No `tensorflow_text`: the tokenizer is made of TensorFlow's own operations.
PLAIN = """
import json, pathlib, sys
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
texts = tf.constant(json.loads(sys.argv[2]))
call = loaded.signatures

def programs():
    # XLA dumps its programs here; those of the decoder have these names.
    files = list(pathlib.Path(sys.argv[3]).glob("module_*"))
    names = {file.name.split(".")[0] for file in files if any(
        name in file.name for name in ("write", "score", "encode"))}
    return len(names)

expected = int(call["warmup"]()["programs"])
warmed = programs()
best, all = call["translate"](text=texts), call["translate_nbest"](text=texts)
scores = call["score"](source=texts, target=texts)
odd = [b"", b"\\xff\\xfe dog", "\\N{GRINNING FACE}", "dog " * 2500]
odd_answers = call["translate"](text=tf.constant(odd))
none = tf.constant([], tf.string)
for count in (1, 2, 3, 5, 7):
    call["translate"](text=tf.constant(["dog " * count] * count))
print(json.dumps({
    "best": [t.decode() for t in best["text"].numpy()],
    "nbest": [[t.decode() for t in row] for row in all["text"].numpy()],
    "nbest_scores": all["score"].numpy().tolist(),
    "scores": scores["score"].numpy().tolist(),
    "tokens": scores["tokens"].numpy().tolist(),
    "vectors": call["encode"](text=texts)["vector"].numpy().tolist(),
    "programs": [expected, warmed, programs()],
    "odd": odd_answers["text"].shape[0],
    "empty": [
        call["translate"](text=none)["text"].shape.as_list(),
        call["translate_nbest"](text=none)["text"].shape.as_list(),
        call["score"](source=none, target=none)["score"].shape.as_list(),
        call["encode"](text=none)["vector"].shape.as_list(),
    ],
    "modules": sorted({"keras_tfm", "tensorflow_text"} & set(sys.modules)),
}))
"""


@pytest.mark.slow
def test_every_signature_answers_as_the_translator_does(
    translator, exported, fresh_process, tmp_path
):
    dumped = tmp_path / "programs"
    printed = fresh_process(
        PLAIN,
        exported,
        json.dumps(WORDS),
        dumped,
        env={"XLA_FLAGS": f"--xla_dump_to={dumped}"},
    )
    found = json.loads(printed.splitlines()[-1])
    assert found["modules"] == []
    assert found["best"] == translator.translate(WORDS)
    expected = translator.translate_nbest(WORDS)
    assert found["nbest"] == [[h.text for h in row] for row in expected]
    np.testing.assert_allclose(
        found["nbest_scores"],
        [[h.score for h in row] for row in expected],
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        found["scores"], translator.score(WORDS, WORDS), rtol=1e-4
    )
    rows = translator.target_tokenizer.tokenize(WORDS).row_lengths() + 1
    assert found["tokens"] == rows.numpy().tolist()
    np.testing.assert_allclose(
        found["vectors"], translator.encode(WORDS), atol=1e-5
    )
    # The warm-up compiles every program; no text needs another.
    assert found["programs"] == [4 * 2] * 3
    assert found["odd"] == 4
    assert found["empty"] == [[0], [0, 2], [0], [0, 8]]


@pytest.mark.slow
def test_a_c_program_translates_with_it(translator, exported, tmp_path):
    include = tf.sysconfig.get_include()
    library = pathlib.Path(include).parent
    program = tmp_path / "translate"
    libraries = [
        str(path)
        for name in ("cc", "framework")
        for path in library.glob(f"libtensorflow_{name}.so.*")
    ]
    compiler = ["cc", "-O1", "-Wall", "-Werror", str(CLIENT), f"-I{include}"]
    built = subprocess.run(
        [*compiler, "-o", program, *libraries, f"-Wl,-rpath,{library}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not built.returncode, built.stderr
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(exported))
        signature = graph.signature_def["serving_default"]
    names = [signature.inputs["text"].name, signature.outputs["text"].name]
    answer = subprocess.run(
        [program, exported, *names, *WORDS, ""],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert not answer.returncode, answer.stderr
    assert answer.stdout.split("\n")[:-1] == translator.translate([*WORDS, ""])
    wrong = subprocess.run(
        [program, exported, "no_such_tensor", names[1], "dog"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert wrong.returncode == 1
    assert "The model has no tensor no_such_tensor." in wrong.stderr


SOAK = """
import random, sys
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
loaded.signatures["warmup"]()
draw = random.Random(3)

def pages():
    return int(open("/proc/self/statm").read().split()[1])

def request():
    count = draw.choice([1, 1, 1, 2, 3, 7])
    texts = [" ".join(["dog"] * draw.randrange(0, 9)) for _ in range(count)]
    name = draw.choice(["translate", "translate_nbest", "encode"])
    loaded.signatures[name](text=tf.constant(texts))

requests = int(sys.argv[2])
for _ in range(requests // 5):
    request()
before = pages()
for _ in range(requests - requests // 5):
    request()
print((pages() - before) * 4096)
"""


@pytest.mark.slow
def test_ten_thousand_requests_do_not_make_a_server_grow(
    exported, fresh_process
):
    grown = int(fresh_process(SOAK, exported, 10_000).splitlines()[-1])
    # A program that was compiled anew would alone take some 10 MB.
    assert grown < 8_000_000

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
        source_lengths=(5, 11),
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
import json, sys
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
texts = tf.constant(json.loads(sys.argv[2]))
call = loaded.signatures
best, all = call["translate"](text=texts), call["translate_nbest"](text=texts)
scores = call["score"](source=texts, target=texts)
odd = [b"", b"\\xff\\xfe dog", "\\N{GRINNING FACE}", "dog " * 2500]
odd_answers = call["translate"](text=tf.constant(odd))
none = tf.constant([], tf.string)
print(json.dumps({
    "best": [t.decode() for t in best["text"].numpy()],
    "nbest": [[t.decode() for t in row] for row in all["text"].numpy()],
    "nbest_scores": all["score"].numpy().tolist(),
    "scores": scores["score"].numpy().tolist(),
    "tokens": scores["tokens"].numpy().tolist(),
    "vectors": call["encode"](text=texts)["vector"].numpy().tolist(),
    "programs": int(call["warmup"]()["programs"]),
    "odd": odd_answers["text"].shape[0],
    "empty": [
        call["translate"](text=none)["text"].shape.as_list(),
        call["translate_nbest"](text=none)["text"].shape.as_list(),
        call["score"](source=none, target=none)["score"].shape.as_list(),
        call["encode"](text=none)["vector"].shape.as_list(),
    ],
    "modules": [m for m in ("keras_tfm", "tensorflow_text") if m in sys.modules],
}))
"""


def test_every_signature_answers_as_the_translator_does(
    translator, exported, fresh_process
):
    found = json.loads(
        fresh_process(PLAIN, exported, json.dumps(WORDS)).splitlines()[-1]
    )
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
    assert found["programs"] == 4 * 2 * 2
    assert found["odd"] == 4
    assert found["empty"] == [[0], [0, 2], [0], [0, 8]]


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


COUNT_PROGRAMS = """
import sys
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
loaded.signatures["warmup"]()
import pathlib
folder = pathlib.Path(sys.argv[2])

def programs():
    return len({f.name.split(".")[0] for f in folder.glob("module_*write*")}
               | {f.name.split(".")[0] for f in folder.glob("module_*score*")}
               | {f.name.split(".")[0] for f in folder.glob("module_*encode*")})

before = programs()
for count in (1, 2, 3, 5):
    for words in (0, 1, 4, 9):
        texts = tf.constant([" ".join(["dog"] * words)] * count)
        loaded.signatures["translate"](text=texts)
        loaded.signatures["translate_nbest"](text=texts)
        loaded.signatures["encode"](text=texts)
        loaded.signatures["score"](source=texts, target=texts)
print(before, programs())
"""


def test_the_warmup_compiles_every_program_there_will_be(
    exported, fresh_process, tmp_path
):
    folder = tmp_path / "programs"
    printed = fresh_process(
        COUNT_PROGRAMS,
        exported,
        folder,
        env={"XLA_FLAGS": f"--xla_dump_to={folder}"},
    )
    before, after = map(int, printed.splitlines()[-1].split())
    assert before == after == 4 * 2 * 2

"""As many programs are compiled as promised: XLA itself is asked.

XLA writes each program that it compiles into a folder; those of a training step
and of a SavedModel's functions are counted there.
"""

import json

import pytest

TRAIN = """
import json, pathlib, sys, warnings
import keras
import numpy as np
from keras_tfm.data.batching import BucketedBatches
from keras_tfm.data.packed_batches import PackedBatches
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.training_run import run_training

random = np.random.default_rng(0)
lengths = random.integers(1, 7, (2, 23))
rows = [[random.integers(4, 11, n) for n in side] for side in lengths]

def programs():
    # The training step has this name on TensorFlow and on JAX.
    files = pathlib.Path(sys.argv[1]).glob("module_*")
    names = {file.name.split(".")[0] for file in files if any(
        name in file.name for name in ("one_step_on_data", "train_step"))}
    return len(names)

def train(batches):
    before = programs()
    model = Transformer(
        11, num_layers=1, hidden_dim=6, intermediate_dim=7, num_heads=3)
    steps = 2 * batches.steps_per_epoch + 1
    run_training(model, batches, TrainingSettings(), steps=steps)
    return programs() - before

class OddLast(BucketedBatches):
    # A user's own: the dataset has a batch that was not promised.
    def dataset(self, *args, **kwargs):
        dataset = super().dataset(*args, **kwargs)
        cut = lambda x, y: ({k: v[:1] for k, v in x.items()}, y[:1])
        return dataset.take(2).concatenate(dataset.map(cut).take(2)).repeat()

ways = {
    "packed": PackedBatches(*rows, 14, row_length=7),
    "buckets": BucketedBatches(*rows, 21, bucket_edges=(3, 7)),
    "odd": OddLast(*rows, 21, bucket_edges=(7,)),
}
found = {}
for way in sys.argv[2:]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = train(ways[way])
    told = [str(w.message) for w in caught if "new shape" in str(w.message)]
    found[way] = [compiled, len(ways[way].shapes), told]
print(json.dumps(found))
"""


def trained(backend, ways, fresh_process, tmp_path):
    """Return programs compiled, shapes known and warnings of some trainings."""
    dumped = tmp_path / "programs"
    flags = f"--xla_backend_optimization_level=0 --xla_dump_to={dumped}"
    printed = fresh_process(
        TRAIN, dumped, *ways, env={"KERAS_BACKEND": backend, "XLA_FLAGS": flags}
    )
    return json.loads(printed.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_training_compiles_a_program_for_each_shape_and_warns_of_others(
    backend, fresh_process, tmp_path
):
    ways = ["packed", "buckets", "odd"]
    found = trained(backend, ways, fresh_process, tmp_path)
    assert found["packed"] == [1, 1, []]
    assert found["buckets"] == [2, 2, []]
    # One more for the shape that nobody promised, and one warning of it.
    compiled, known, (message,) = found["odd"]
    assert (compiled, known) == (2, 1)
    new, _, before = message.partition("Known before: ")
    assert "source_ids int32 (1, 7), target_ids int32 (1, 7)" in new
    assert "source_ids (3, 7), target_ids (3, 7)" in before


SERVE = """
import json, pathlib, sys
import tensorflow as tf
from keras_tfm.export.text_to_text import TextToText
from keras_tfm.text.character_tokenizer import CharacterTokenizer

tokenizer = CharacterTokenizer.train(["abcdefg"])
factor = tf.Variable(1)

def translate_ids(ids):
    kept = tf.ensure_shape(ids[:, :5], (None, 5)) * factor
    return kept, tf.cast(ids[:, 0], tf.float32)

def encode_ids(ids):
    real = tf.reduce_sum(tf.cast(ids * factor != 0, tf.float32), 1)
    return tf.stack([real, real], 1)

module = TextToText(
    tokenizer, tokenizer, {"translate": translate_ids, "encode": encode_ids},
    [factor], lengths=(5, 11), batch_sizes=(1, 3))
tf.saved_model.save(module, sys.argv[2], signatures=module.signatures())
call = tf.saved_model.load(sys.argv[2]).signatures

def programs():
    files = pathlib.Path(sys.argv[1]).glob("module_*")
    return len({file.name.split(".")[0] for file in files
                if "_ids_" in file.name})

counts = [programs()]
call["encode"](text=tf.constant(["ab"]))
counts.append(programs())
promised = int(call["warmup"]()["programs"])
counts.append(programs())
for number in (1, 2, 7):
    for letters in (0, 3, 9, 50):
        for name in ("translate", "encode"):
            call[name](text=tf.constant(["a" * letters] * number))
print(json.dumps({"promised": promised, "counts": [*counts, programs()]}))
"""


def test_a_saved_model_compiles_the_programs_of_its_warmup_and_no_more(
    fresh_process, tmp_path
):
    dumped = tmp_path / "programs"
    printed = fresh_process(
        SERVE,
        dumped,
        tmp_path / "saved",
        env={
            "KERAS_BACKEND": "tensorflow",
            "XLA_FLAGS": f"--xla_dump_to={dumped}",
        },
    )
    found = json.loads(printed.splitlines()[-1])
    # Two functions, two lengths, two batch sizes: see `TextToText`.
    assert found["promised"] == 2 * 2 * 2
    assert found["counts"] == [0, 1, 8, 8]

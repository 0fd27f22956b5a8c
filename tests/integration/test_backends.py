"""One translator on two backends: trained on JAX, used on TensorFlow."""

import json

import pytest

TRAIN_ON_JAX = """
import json, sys
import keras
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.translation import Translator

assert keras.backend.backend() == "jax"
keras.utils.set_random_seed(1)
sources = [f"{a}{b}" for a in range(8) for b in range(8)]
targets = ["".join("abcdefgh"[int(c)] for c in text) for text in sources]
pairs = SentencePairs(sources=sources, targets=targets, name="digits")
translator = Translator.from_pairs(
    pairs, tokenizer="characters", joint=False, num_layers=1, hidden_dim=32,
    intermediate_dim=32, num_heads=2, dropout=0.1, max_target_length=7,
    source_lengths=(7,),
)
settings = TrainingSettings(
    tokens_per_batch=96, max_shapes=1, peak=0.01, warmup_steps=20
)
folder = sys.argv[1]
translator.fit(pairs, settings, steps=120, folder=folder)
logs = translator.fit(pairs, settings, steps=360, folder=folder, resume=True)
assert logs["steps"] == 360, logs
translator.save(folder)
answers = translator.translate([*sources, ""])
translator.model.encoder.blocks[0].self_attention.norm.gamma.assign_add(
    [5.0] * 32
)
assert translator.translate([*sources, ""]) != answers  # not compiled in
try:
    translator.export(folder + "/saved_model")
except RuntimeError as error:
    assert "KERAS_BACKEND=tensorflow" in str(error)
print(json.dumps([answers, targets]))
"""

USE_ON_TENSORFLOW = """
import json, sys
import keras
from keras_tfm.tasks.translation import Translator

assert keras.backend.backend() == "tensorflow"
translator = Translator.load(sys.argv[1])
texts = [f"{a}{b}" for a in range(8) for b in range(8)]
print(json.dumps(translator.translate([*texts, ""])))
"""


@pytest.mark.slow
def test_a_translator_trained_on_jax_says_the_same_on_tensorflow(
    fresh_process, tmp_path
):
    folder = tmp_path / "translator"
    printed = fresh_process(TRAIN_ON_JAX, folder, env={"KERAS_BACKEND": "jax"})
    answers, targets = json.loads(printed.splitlines()[-1])
    right = sum(a == t for a, t in zip(answers, targets, strict=False))
    assert right >= 58  # of 64: it has learnt
    assert answers[-1] == ""
    printed = fresh_process(
        USE_ON_TENSORFLOW, folder, env={"KERAS_BACKEND": "tensorflow"}
    )
    assert json.loads(printed.splitlines()[-1]) == answers

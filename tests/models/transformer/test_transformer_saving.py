"""Transformer: what is saved is what is loaded, in a process of its own."""

import inspect
import json

import keras
import numpy as np
import pytest
from models.transformer.made import batch
from models.transformer.made import fresh
from models.transformer.made import logits
from models.transformer.made import made

from keras_tfm.layers import gelu_tanh
from keras_tfm.models import Transformer

LOAD = """
    import json
    import pathlib

    import keras
    import numpy as np

    import keras_tfm

    for path in sorted(pathlib.Path().glob("*.keras")):
        model = keras.saving.load_model(path)
        assert type(model) is keras_tfm.models.Transformer, type(model)
        stored = np.load(path.with_suffix(".npz"))
        # JAX is slow op by op.
        on_jax = keras.backend.backend() == "jax"
        call = model.predict_on_batch if on_jax else model
        found = np.asarray(
            call(
                {
                    "source_ids": stored["source"],
                    "target_ids": stored["target"],
                }
            )
        )
        assert found.dtype == stored["logits"].dtype, found.dtype
        np.testing.assert_allclose(
            found.astype("float32"),
            stored["logits"].astype("float32"),
            atol=float(stored["tolerance"]),
        )
        config = json.loads(path.with_suffix(".json").read_text())
        assert model.get_config() == config, model.get_config()
        print("equal:", path.stem)
"""


def test_models_come_back_in_a_fresh_process(fresh_process, tmp_path):
    models = {
        "untied": made(None, True),
        "mixed": fresh("all", False, dtype="mixed_float16"),
    }
    models["tanh"] = fresh(
        "decoder",
        True,
        activation=gelu_tanh,
        num_decoder_layers=1,
        pad_id=2,
        position_layout="interleaved",
        position_denominator="paper",
        use_bias=True,
        name="other_name",
    )
    source, target = batch()
    for name, model in models.items():
        model.save(tmp_path / f"{name}.keras")
        np.savez(
            tmp_path / f"{name}.npz",
            source=source,
            target=target,
            logits=logits(model, source, target),
            tolerance=1e-2 if name == "mixed" else 1e-5,
        )
        config = json.dumps(model.get_config())
        (tmp_path / f"{name}.json").write_text(config, encoding="utf-8")
    # The global policy of the process that loads decides nothing.
    found = fresh_process(LOAD).split("equal: ")[1:]
    assert [name.strip() for name in found] == sorted(models)


@pytest.mark.parametrize(
    "policy",
    [
        None,
        "mixed_float16",
        keras.DTypePolicy("mixed_bfloat16"),
        {"class_name": "DTypePolicy", "config": {"name": "float16"}},
    ],
)
def test_the_config_is_plain_json_under_every_policy(policy):
    model = fresh(dtype=policy, num_layers=1)
    config = json.loads(json.dumps(model.get_config()))
    again = Transformer.from_config(config)
    assert again.get_config() == model.get_config()
    assert again.encoder.dtype_policy.name == model.encoder.dtype_policy.name


def test_every_argument_of_the_constructor_is_in_the_config():
    names = set(inspect.signature(Transformer).parameters) - {"kwargs"}
    assert names <= set(made().get_config())


def test_the_global_policy_is_saved_as_the_models_own():
    keras.config.set_dtype_policy("mixed_bfloat16")
    config = fresh(num_layers=1).get_config()
    keras.config.set_dtype_policy("float32")
    again = Transformer.from_config(config)
    assert again.encoder.dtype_policy.name == "mixed_bfloat16"


def test_weights_alone_go_into_a_model_of_the_same_sizes(tmp_path):
    model = made(None, True)
    model.save_weights(tmp_path / "model.weights.h5")
    again = Transformer.from_config(model.get_config())
    again.load_weights(tmp_path / "model.weights.h5")
    source, target = batch()
    np.testing.assert_allclose(
        logits(again, source, target), logits(model, source, target), atol=1e-6
    )


@pytest.mark.filterwarnings("ignore:Skipping nested container")
@pytest.mark.parametrize(
    "change", [{"num_layers": 3}, {"use_bias": True}, {"hidden_dim": 8}]
)
def test_weights_of_other_sizes_are_an_error(tmp_path, change):
    made().save_weights(tmp_path / "model.weights.h5")
    other = fresh(**change)
    with pytest.raises(ValueError, match=r"[Ll]ayer|shape|expected"):
        other.load_weights(tmp_path / "model.weights.h5")


def test_a_model_is_complete_before_its_first_call():
    model = made()
    again = Transformer.from_config(model.get_config())
    assert len(again.weights) == len(model.weights)
    again.set_weights(model.get_weights())
    source, target = batch()
    np.testing.assert_allclose(
        logits(again, source, target), logits(model, source, target), atol=1e-6
    )


def test_a_frozen_model_is_loaded_frozen(tmp_path):
    model = fresh(num_layers=1)
    model.trainable = False
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert not again.trainable_weights
    assert len(again.weights) == len(model.weights)


EXPORT = """
    import numpy as np
    import tensorflow as tf

    import keras
    import keras_tfm

    model = keras.saving.load_model("model.keras")
    # By tracing, with both axes open: one program serves all lengths.
    model.export("exported", verbose=False)
    served = tf.saved_model.load("exported")
    shapes = [((2, 5), (2, 3)), ((3, 7), (3, 38)), ((1, 1), (1, 1))]
    for source, target in shapes:
        source = np.arange(np.prod(source)).reshape(source) % 7
        target = np.arange(np.prod(target)).reshape(target) % 5
        inputs = {
            "source_ids": tf.constant(source, tf.int32),
            "target_ids": tf.constant(target, tf.int32),
        }
        expected = model(inputs).numpy()
        np.testing.assert_allclose(served.serve(inputs), expected, atol=1e-5)
        by_name = served.signatures["serving_default"](**inputs)
        (found,) = by_name.values()
        np.testing.assert_allclose(found, expected, atol=1e-5)
    specs = served.signatures["serving_default"].structured_input_signature[1]
    assert {s.dtype for s in specs.values()} == {tf.int32}
    assert {tuple(s.shape) for s in specs.values()} == {(None, None)}

    checkpoint = tf.train.Checkpoint(model=model)
    path = checkpoint.save("checkpoint/step")
    fresh = keras_tfm.models.Transformer.from_config(model.get_config())
    tf.train.Checkpoint(model=fresh).restore(path).assert_consumed()
    np.testing.assert_array_equal(fresh(inputs), expected)

    @tf.function
    def call(ids):
        return model({"source_ids": ids, "target_ids": ids})

    ids = tf.constant([[3, 1, 0, 0], [5, 0, 0, 0]])
    np.testing.assert_allclose(
        call(ids)[0, :2], call(ids[:1, :2])[0], atol=1e-5
    )
    print("done")
"""


def test_tensorflow_exports_and_checkpoints_a_model_of_either_backend(
    fresh_process, tmp_path
):
    made("all", True).save(tmp_path / "model.keras")
    found = fresh_process(EXPORT, env={"KERAS_BACKEND": "tensorflow"})
    assert found.endswith("done\n")

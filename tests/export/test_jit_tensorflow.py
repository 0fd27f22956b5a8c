"""XLA's objections are read to the last operation."""

import keras
import pytest

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of TensorFlow"
)
tf = pytest.importorskip("tensorflow")


class Odd(keras.layers.Layer):
    def call(self, inputs):
        text = tf.strings.as_string(inputs)
        return tf.cond(
            tf.reduce_sum(inputs) > 0,
            lambda: tf.strings.to_number(tf.strings.upper(text)),
            lambda: tf.cast(tf.nn.in_top_k([0] * 3, inputs, 2), tf.float32),
        )


def findings(layer, shape=(3, 5)):
    from keras_tfm.export.jit_tensorflow import tensorflow_findings

    specs = keras.KerasTensor(shape, "float32")
    layer.built = True
    return tensorflow_findings(layer, specs, {})


def test_all_operations_are_named_also_those_in_branches():
    found = findings(Odd(name="odd"))
    kinds = [finding.operation for finding in found]
    assert {"`AsString`", "`StringUpper`", "`StringToNumber`"} <= set(kinds)
    assert "`Placeholder`" not in kinds
    assert "`If`" not in kinds
    assert {finding.layer for finding in found} == {"odd"}


def test_an_objection_that_nobody_foresaw_is_quoted():
    class Wrong(keras.layers.Layer):
        def call(self, inputs):
            shape = tf.where(inputs[0] > 0)[:2, 0]
            return tf.reshape(inputs, tf.stack([shape[0], 15]))

    (*_, finding) = findings(Wrong(name="wrong"))
    assert finding.effect == "blocked"

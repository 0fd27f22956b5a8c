"""What keeps XLA from compiling a model is named; XLA itself agrees."""

import keras
import numpy as np
import pytest
from backend_functions import compiled
from keras import ops

from keras_tfm.export import explain_jit
from keras_tfm.models import packed_model
from keras_tfm.models.transformer.transformer import Transformer

BACKEND = keras.backend.backend()
on_tensorflow = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="made of TensorFlow's operations"
)
ROWS = np.full((3, 5), 0.4, "float32")


class Odd(keras.layers.Layer):
    """Apply a function that XLA may not like."""

    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = function

    def call(self, inputs):
        return self.function(inputs)


class Counter(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.calls = 0

    def call(self, inputs):
        self.calls += 1
        return inputs


def model_of(*layers):
    dense = keras.layers.Dense(5, kernel_initializer="ones", name="before")
    return keras.Sequential([dense, *layers], name="tried")


def is_compiled(model, inputs):
    """Let XLA compile and run a model; return whether it could."""
    try:
        if not model.built:
            model.build(inputs.shape)
        compiled(lambda x: model(x))(ops.convert_to_tensor(inputs))
    except Exception:
        return False
    return True


def make_transformer():
    return Transformer(
        11, num_layers=1, hidden_dim=6, intermediate_dim=7, num_heads=3
    )


def python_call(x):
    import tensorflow as tf

    result = tf.py_function(lambda a: a, [x], tf.float32)
    return tf.ensure_shape(result, x.shape)


def strings_in_a_loop(x):
    import tensorflow as tf

    def body(step, y):
        text = tf.strings.lower(tf.strings.as_string(y))
        return step + 1, y + tf.strings.to_number(text)

    return tf.while_loop(lambda step, y: step < 3, body, (0, x))[1]


def ragged(x):
    import tensorflow as tf

    return tf.RaggedTensor.from_tensor(x, padding=0.0).to_tensor()


def without_kernel(x):
    import tensorflow as tf

    return tf.math.real(tf.linalg.eig(tf.einsum("bi,bj->bij", x, x))[0])


def printing(x):
    import tensorflow as tf

    tf.print("sum", tf.reduce_sum(x))
    return x


def size_by_value(x):
    return ops.arange(ops.cast(ops.sum(x), "int32"))


def with_numpy(x):
    return ops.convert_to_tensor(np.asarray(x) * 2)


def python_branch(x):
    return x if bool(ops.sum(x) > 0) else -x


def selected(x):
    import tensorflow as tf

    return tf.reduce_sum(tf.boolean_mask(x, x > 0))


def doubled(x):
    return x * 2


# The function, the operation that is named, and a word of the reason.
BLOCKED_ON_TENSORFLOW = [
    (python_call, "EagerPyFunc", "calls back into Python"),
    (strings_in_a_loop, "StringLower", "no strings"),
    (ragged, "RaggedTensorToTensor", "several lengths"),
    (without_kernel, "Eig", "no kernel"),
    (printing, "PrintV2", "cannot print"),
    (size_by_value, "Range", "depends on the values"),
]
BLOCKED_ANYWHERE = [
    (with_numpy, "np.asarray(x)", "NumPy asks for the values"),
    (python_branch, "bool(ops.sum(x) > 0)", "Python decides"),
]


def check_blocked(function, operation, reason):
    report = explain_jit(model_of(Odd(function, name="odd")), ROWS)
    assert report.blocked
    assert not is_compiled(model_of(Odd(function)), ROWS)
    lines = [str(f) for f in report if f.effect == "blocked"]
    assert any(operation in line and reason in line for line in lines), lines
    assert {f.layer for f in report if f.effect == "blocked"} == {"odd"}
    assert str(report).startswith("XLA cannot compile 'tried' (inputs float32")


@on_tensorflow
@pytest.mark.parametrize(
    "case", BLOCKED_ON_TENSORFLOW, ids=lambda case: case[0].__name__
)
def test_an_operation_that_xla_cannot_compile_is_named(case):
    check_blocked(*case)


@pytest.mark.parametrize(
    "case", BLOCKED_ANYWHERE, ids=lambda case: case[0].__name__
)
def test_a_line_that_cannot_be_traced_is_named(case):
    function, _, reason = case
    # The line of the layer itself calls the function.
    check_blocked(function, "self.function(inputs)", reason)


def test_what_xla_compiles_is_not_blocked():
    report = explain_jit(model_of(Odd(doubled)), ROWS)
    assert str(report) == (
        "Nothing keeps XLA from compiling 'tried' (inputs float32 (3, 5))."
    )
    assert len(report) == 0
    assert is_compiled(model_of(Odd(doubled)), ROWS)


def test_our_model_is_not_blocked_and_takes_rows_of_any_length():
    report = explain_jit(make_transformer())
    assert not report.blocked
    (finding,) = report
    assert finding.effect == "compiled again"
    assert "source_ids (None, None), target_ids (None, None)" in str(finding)


@pytest.mark.slow
def test_a_model_of_packed_rows_is_not_blocked():
    ids = keras.Input((7,), batch_size=3, dtype="int32")
    model = packed_model(make_transformer())
    assert len(explain_jit(model, dict.fromkeys(model.input, ids))) == 0


@on_tensorflow
def test_a_table_of_words_is_named_with_its_place_in_the_model():
    words = keras.Input((4,), dtype="string", name="words")
    lookup = keras.layers.StringLookup(vocabulary=["a", "b"], name="lookup")
    inner = keras.Model(words, lookup(words), name="inner")
    embed = keras.layers.Embedding(4, 3)
    model = keras.Model(words, embed(inner(words)), name="outer")
    report = explain_jit(model)
    assert report.blocked
    assert not is_compiled(model, np.array([["a", "b", "c", "a"]]))
    finding = next(f for f in report if "LookupTable" in f.operation)
    assert finding.layer == "inner/lookup"
    assert "pipeline" in finding.remedy
    # Said once, not again for the layer's own refusal.
    assert not [f for f in report if f.effect == "switched off"]


@on_tensorflow
def test_strings_given_as_a_batch_are_taken_as_strings():
    import tensorflow as tf

    model = Odd(tf.strings.length, name="length")
    report = explain_jit(model, ["dog", "the fox"])
    assert report.blocked
    assert not is_compiled(model, np.array(["dog", "the fox"]))
    assert "string (2,)" in report.traced


@on_tensorflow
def test_a_size_by_the_values_of_the_input_is_compiled_for_each_value():
    model = Odd(size_by_value, name="odd")
    report = explain_jit(model, ROWS)
    assert not report.blocked
    assert is_compiled(model, ROWS)
    (finding,) = report
    assert finding.effect == "compiled again"
    assert finding.operation == "`Range`"


def test_a_choice_of_elements_is_dynamic_on_tensorflow_and_fails_on_jax():
    if BACKEND == "jax":
        chosen = model_of(Odd(lambda x: x[ops.where(x > 0)], name="odd"))
        report = explain_jit(chosen, ROWS)
        assert report.blocked
        assert not is_compiled(chosen, ROWS)
        assert "A size depends on the values" in str(report)
        return
    model = model_of(Odd(selected, name="odd"))
    report = explain_jit(model, ROWS)
    assert not report.blocked
    assert is_compiled(model, ROWS)
    assert [f.effect for f in report] == ["dynamic shape"]


# On JAX it is not used where there is no GPU, and nothing is said.
@on_tensorflow
def test_cudnn_is_named_where_it_is_asked_for():
    layer = keras.layers.GRU(3, use_cudnn=True, name="memory")
    report = explain_jit(keras.Sequential([layer]), ROWS[..., None])
    assert "use_cudnn=False" in str(report)
    assert {finding.layer for finding in report} == {"memory"}


def test_python_code_that_runs_once_is_told_of():
    report = explain_jit(model_of(Counter(name="count")), ROWS)
    assert not report.blocked
    (finding,) = report
    assert (finding.effect, finding.layer) == ("runs once", "count")
    assert finding.operation == "`self.calls`"


def test_what_switches_xla_off_is_told_of():
    refusing = Odd(doubled, name="odd")
    refusing.supports_jit = False
    model = model_of(refusing)
    with pytest.warns(UserWarning, match="doesn't support `jit_compile"):
        model.compile("sgd", "mse", jit_compile=True)
    report = explain_jit(model, ROWS)
    assert not report.blocked
    found = {f.operation: f.layer for f in report}
    assert found == {"jit_compile=False": "", "`supports_jit=False`": "odd"}
    model = model_of()
    model.compile("sgd", "mse", run_eagerly=True)
    (finding,) = explain_jit(model, ROWS)
    assert finding.operation == "run_eagerly=True"


def test_nothing_is_run_and_no_weight_changes():
    model = model_of(keras.layers.BatchNormalization())
    model.build(ROWS.shape)
    before = model.get_weights()
    assert not explain_jit(model, ROWS).blocked
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_inputs_that_nobody_knows_are_an_error():
    with pytest.raises(ValueError, match="Give `inputs`"):
        explain_jit(model_of())

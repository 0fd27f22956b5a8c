"""What every layer of the package must pass, with Keras's public API only.

A check takes a `LayerCase`; `check_layer` runs them all. Two of them depend on
the backend: a compiled call is a `tf.function` or a `jax.jit`. The round trip
through a fresh process has two halves, so that one process serves many layers:
`save_model` for each, then `LOAD_MODELS` once.
"""

import dataclasses
import json
from collections.abc import Callable

import keras
import numpy as np
from gradients import compiled
from keras import ops

from keras_tfm.layers.regularization.dropout import Dropout

# What a fresh process runs: it knows nothing but keras and keras_tfm.
LOAD_MODELS = """
    import pathlib

    import keras
    import keras_tfm
    import numpy as np

    for path in sorted(pathlib.Path().glob("*.keras")):
        stored = np.load(path.with_suffix(".npz"))
        model = keras.saving.load_model(path)
        inputs = [stored[f"input_{i}"] for i in range(len(model.inputs))]
        outputs = keras.tree.flatten(model(inputs))
        for index, output in enumerate(outputs):
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(output).astype("float32"),
                stored[f"output_{index}"],
                atol=float(stored["tolerance"]),
                err_msg=path.name,
            )
        print("equal:", path.stem)
"""


@dataclasses.dataclass(frozen=True)
class LayerCase:
    """A layer, and what to call it with.

    Args:
        make: Function of Keras's layer arguments (`dtype`, `name`) that makes
            a new layer.
        inputs: Tuple of NumPy arrays, in the order of the call's arguments.
        flags: Tuple of dictionaries of call arguments: each changes the
            structure of the output, and its shapes are checked.
        dropping: As `make`, for a layer whose every dropout is active; `None`
            for a layer without dropouts.
        num_dropouts: Integer, how many dropouts `dropping` makes.
    """

    make: Callable
    inputs: tuple
    flags: tuple = ({},)
    dropping: Callable | None = None
    num_dropouts: int = 0


def check_layer(case):
    """Run every check on one layer."""
    for check in CHECKS:
        check(case)


def check_shapes(case):
    """Every way to learn a shape gives the shape of a real output."""
    for flags in case.flags:
        layer = case.make()
        real = keras.tree.flatten(layer(*case.inputs, **flags))
        for unknown in (False, True):
            specs = layer(*symbolic(case.inputs, unknown), **flags)
            specs = keras.tree.flatten(specs)
            assert len(specs) == len(real), flags
            for spec, tensor in zip(specs, real, strict=True):
                assert fits(spec.shape, tensor.shape), (spec, flags)
                assert dtype_of(spec) == dtype_of(tensor), flags
                assert unknown or None not in spec.shape
    shapes = [array.shape for array in case.inputs]
    output = keras.tree.flatten(layer(*case.inputs))[0]
    assert tuple(case.make().compute_output_shape(*shapes)) == output.shape
    unknown = [(None, None, *shape[2:]) for shape in shapes]
    expected = (None, None, *output.shape[2:])
    assert tuple(case.make().compute_output_shape(*unknown)) == expected


def check_build(case):
    """`build` alone makes every weight, under the names a call gives."""
    called = case.make(name="same")
    called(*case.inputs)
    built = built_layer(case, name="same")
    assert signature(built) == signature(called)
    assert all(layer.built for layer in inner_layers(built))


def check_config(case):
    """The config is plain JSON and rebuilds the layer."""
    layer = built_layer(case, dtype=keras.DTypePolicy("mixed_float16"))
    randomise(layer)
    config = layer.get_config()
    assert json.loads(json.dumps(config)) == listed(config)
    name = type(layer).__name__
    assert keras.saving.get_registered_name(type(layer)) == f"keras_tfm>{name}"
    restored = type(layer).from_config(json.loads(json.dumps(config)))
    assert listed(restored.get_config()) == listed(config)
    restored.build(*[array.shape for array in case.inputs])
    restored.set_weights(layer.get_weights())
    assert_same(restored(*case.inputs), layer(*case.inputs), atol=0)
    assert "_layers" not in vars(type(layer))


def check_weight_paths(case):
    """No two weights have one path."""
    paths = [weight.path for weight in built_layer(case).weights]
    assert len(set(paths)) == len(paths)


def check_weights_file(case, folder):
    """`.weights.h5` takes every weight to a layer of the same config."""
    first, second = functional_model(case), functional_model(case)
    randomise(first, 1)
    randomise(second, 2)
    first.save_weights(folder / "layer.weights.h5")
    second.load_weights(folder / "layer.weights.h5")
    for ours, theirs in zip(
        first.get_weights(), second.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def check_inner_policies(case):
    """Inner layers have the outer policy, whatever the global one is."""
    keras.config.set_dtype_policy("mixed_float16")
    layer = built_layer(case, dtype="float32")
    assert {inner.dtype_policy.name for inner in inner_layers(layer)} <= {
        "float32"
    }
    keras.config.set_dtype_policy("float32")
    layer = built_layer(case, dtype="mixed_bfloat16")
    assert {inner.dtype_policy.name for inner in inner_layers(layer)} <= {
        "mixed_bfloat16"
    }


def check_mixed_precision(case):
    """In 16 bits the output is near the one in 32, and of the right dtype."""
    full = built_layer(case, dtype="float32")
    randomise(full)
    expected = keras.tree.flatten(full(*case.inputs))[0]
    for policy, tolerance in (("mixed_float16", 0.02), ("mixed_bfloat16", 0.1)):
        half = built_layer(case, dtype=policy)
        half.set_weights(full.get_weights())
        output = keras.tree.flatten(half(*case.inputs))[0]
        if dtype_of(expected) != "bool":
            assert dtype_of(output) == half.compute_dtype
        size = np.abs(to_numpy(expected)).max()
        assert np.isfinite(to_numpy(output)).all()
        assert_same(output, expected, atol=tolerance * max(size, 1.0))


def check_xla_fit(case):
    """One step of `fit` compiles with XLA and changes every weight."""
    layer = case.make()
    model = Trial(layer)
    model.compile("sgd", "mse", jit_compile=True)
    assert model.jit_compile
    model(list(case.inputs))
    randomise(layer)
    before = layer.get_weights()
    targets = np.ones((len(case.inputs[0]), 2))
    losses = model.fit(
        list(case.inputs), targets, batch_size=len(targets), verbose=0
    ).history["loss"]
    assert np.isfinite(losses).all()
    assert model.jit_compile
    for weight, old in zip(layer.weights, before, strict=True):
        # A bias of the keys shifts all scores of a query alike: no gradient.
        if not weight.path.endswith("/key/bias"):
            assert np.abs(to_numpy(weight.value) - old).max() > 0, weight.path


def check_compiled_call(case):
    """A compiled call gives what an eager one does."""
    layer = built_layer(case)
    randomise(layer)
    tensors = [ops.convert_to_tensor(array) for array in case.inputs]
    assert_same(compiled(layer)(*tensors), layer(*tensors), atol=1e-5)


def check_nesting(case):
    """A functional model with the layer works inside another one."""
    inner = functional_model(case)
    randomise(inner)
    inputs = symbolic(case.inputs, unknown=True)
    outer = keras.Model(inputs, inner(inputs))
    assert_same(outer(list(case.inputs)), inner(list(case.inputs)), atol=1e-6)


def check_dropout(case):
    """Dropout is active in training only, each with its own stream."""
    layer = (case.dropping or case.make)()
    layer.build(*[array.shape for array in case.inputs])
    randomise(layer)
    dropouts = [
        inner
        for inner in (layer, *inner_layers(layer))
        if isinstance(inner, Dropout) and inner.rate
    ]
    assert len(dropouts) == case.num_dropouts
    streams = {
        tuple(to_numpy(dropout.seed_generator.state.value))
        for dropout in dropouts
    }
    assert len(streams) == case.num_dropouts
    resting = layer(*case.inputs)
    assert_same(layer(*case.inputs), resting, atol=0)
    assert_same(layer(*case.inputs, training=False), resting, atol=0)
    if case.num_dropouts:
        first = layer(*case.inputs, training=True)
        second = layer(*case.inputs, training=True)
        assert not np.array_equal(to_numpy(first), to_numpy(resting))
        assert not np.array_equal(to_numpy(first), to_numpy(second))


CHECKS = (
    check_shapes,
    check_build,
    check_config,
    check_weight_paths,
    check_inner_policies,
    check_mixed_precision,
    check_xla_fit,
    check_compiled_call,
    check_nesting,
    check_dropout,
)


def save_model(case, path, dtype=None, tolerance=1e-5):
    """Save a model with random weights, its inputs and outputs, for a reader.

    Args:
        case: `LayerCase`.
        path: Path that ends in `.keras`; an `.npz` goes beside it.
        dtype: Policy of the layer. Defaults to the global one.
        tolerance: Float, for the reader.
    """
    model = functional_model(case, dtype)
    randomise(model)
    arrays = {f"input_{i}": array for i, array in enumerate(case.inputs)}
    outputs = keras.tree.flatten(model(list(case.inputs)))
    for index, output in enumerate(outputs):
        arrays[f"output_{index}"] = to_numpy(output).astype("float32")
    np.savez(path.with_suffix(".npz"), tolerance=tolerance, **arrays)
    model.save(path)


class Trial(keras.Model):
    """A layer under a dense head, to be trained."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.head = keras.layers.Dense(2)

    def call(self, inputs):
        output = keras.tree.flatten(self.layer(*inputs))[0]
        # The square keeps a sum over normalised channels from being constant.
        features = ops.square(ops.cast(output, "float32"))
        features = ops.reshape(features, (ops.shape(features)[0], -1))
        return self.head(features)


def functional_model(case, dtype=None):
    """Make a functional model of any length around a new layer."""
    inputs = symbolic(case.inputs, unknown=True)
    layer = case.make() if dtype is None else case.make(dtype=dtype)
    return keras.Model(inputs, layer(*inputs, **case.flags[-1]))


def symbolic(arrays, unknown):
    """Make an input for each array, with or without known leading sizes."""
    return [
        keras.Input(
            batch_shape=(None, None, *array.shape[2:])
            if unknown
            else array.shape,
            dtype=array.dtype.name,
        )
        for array in arrays
    ]


def built_layer(case, **kwargs):
    """Make a layer and build it from shapes, without a call."""
    layer = case.make(**kwargs)
    layer.build(*[array.shape for array in case.inputs])
    return layer


def randomise(layer, seed=7):
    """Give every weight random values, the norms' too."""
    rng = np.random.default_rng(seed)
    layer.set_weights(
        [rng.normal(0.0, 0.4, w.shape) for w in layer.get_weights()]
    )


def inner_layers(layer):
    """Return all layers inside `layer`, at any depth."""
    found = []
    for name, value in vars(layer).items():
        if name.startswith("_"):
            continue
        values = value if isinstance(value, list | tuple) else [value]
        for inner in values:
            if isinstance(inner, keras.layers.Layer) and inner not in found:
                found += [inner, *inner_layers(inner)]
    return list({id(inner): inner for inner in found}.values())


def signature(layer):
    """Return the paths, shapes and dtypes of all weights, in order."""
    return [(w.path, tuple(w.shape), w.dtype) for w in layer.weights]


def fits(symbolic_shape, shape):
    """Tell if a shape with unknown sizes is that of a real tensor."""
    return len(symbolic_shape) == len(shape) and all(
        guess in (None, size)
        for guess, size in zip(symbolic_shape, shape, strict=True)
    )


def listed(config):
    """Return `config` as JSON gives it back: with lists for tuples."""
    if isinstance(config, dict):
        return {key: listed(value) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return [listed(value) for value in config]
    return config


def dtype_of(tensor):
    return keras.backend.standardize_dtype(tensor.dtype)


def to_numpy(tensor):
    """Return a tensor as NumPy, bfloat16 as float32."""
    if "float" in dtype_of(tensor):
        tensor = ops.cast(tensor, "float32")
    return ops.convert_to_numpy(tensor)


def assert_same(actual, expected, atol):
    """Compare two structures of tensors."""
    actual, expected = keras.tree.flatten(actual), keras.tree.flatten(expected)
    for one, other in zip(actual, expected, strict=True):
        one, other = to_numpy(one), to_numpy(other)
        if one.dtype == bool:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=0, atol=atol)

"""TensorFlow starts without noise, and its errors are not lost."""

import os
import random

import keras
import numpy as np
import pytest

from keras_tfm.cli.tensorflow_setup import held_back_errors
from keras_tfm.cli.tensorflow_setup import start_tensorflow


def test_what_is_written_to_the_standard_error_is_held_back(capfd):
    with held_back_errors():
        os.write(2, b"I0000 a line of C++ code\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_it_is_shown_after_a_failure(capfd):
    def fail():
        os.write(2, b"what went wrong\n")
        raise ImportError

    with pytest.raises(ImportError), held_back_errors():
        fail()
    assert capfd.readouterr().err == "what went wrong\n"


def test_a_seed_makes_random_numbers_repeatable():
    draws = []
    for _ in range(2):
        start_tensorflow(seed=3)
        draws.append(
            (
                random.random(),
                np.random.random(),
                keras.random.make_default_seed(),
            )
            if hasattr(keras.random, "make_default_seed")
            else (random.random(), np.random.random())
        )
    assert draws[0] == draws[1]


def test_the_device_is_told():
    assert start_tensorflow().startswith(("CPU, ", "1 GPU", "2 GPU"))


def test_a_gpu_computes_in_sixteen_bits(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: ["one", "two"]
    )
    assert start_tensorflow().startswith("2 GPU found: mixed_bfloat16")
    assert keras.config.dtype_policy().name == "mixed_bfloat16"


def test_nothing_unexplained_is_printed(fresh_process):
    snippet = """
        import os
        import sys

        sys.argv[0] = "keras-tfm"
        sys.stderr.flush()
        os.dup2(1, 2)
        from keras_tfm.cli.tensorflow_setup import start_tensorflow

        start_tensorflow()
        import tensorflow as tf

        square = tf.function(lambda x: x @ x, jit_compile=True)
        print(float(square(tf.ones((2, 2)))[0, 0]))
    """
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    assert fresh_process(snippet, env=environment) == "2.0\n"

"""Start TensorFlow and Keras without noise, on the best device there is."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator

# Errors of TensorFlow's C++ code that matter arrive as Python exceptions.
QUIET_ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}


def start_tensorflow(seed: int | None = None) -> str:
    """Import Keras, take the GPU if there is one, and say what was found.

    On a GPU the memory grows as it is needed and layers made from now on
    compute in bfloat16 (`mixed_bfloat16`). This comes before any other import
    of something heavy.

    Args:
        seed: Non-negative integer, of all random numbers, or `None`.

    Returns:
        String, one line on the device.
    """
    for name, value in QUIET_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    with held_back_errors():
        import keras
        import tensorflow as tf

        tf.get_logger().setLevel(logging.ERROR)
        gpus = tf.config.list_physical_devices("GPU")
        if keras.backend.backend() == "jax":
            import jax

            gpus = [d for d in jax.devices() if d.platform == "gpu"]
    if seed is not None:
        keras.utils.set_random_seed(seed)
    if not gpus:
        return f"CPU, {_num_cpus()} cores, float32"
    keras.config.set_dtype_policy("mixed_bfloat16")
    return f"{len(gpus)} GPU found: mixed_bfloat16, its memory grows as needed"


@contextlib.contextmanager
def held_back_errors() -> Iterator[None]:
    """Hold back what is written to the standard error; show it after a failure.

    Some lines of TensorFlow's C++ code come while it is imported, before it
    reads any setting. So the file descriptor itself is turned away.
    """
    try:
        kept = os.dup(2)
    except OSError:  # There is no standard error.
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            if failed:
                held.seek(0)
                os.write(2, held.read())


def _num_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""A training starts with malloc set up for it, unless someone else did."""

import os
import sys

import pytest

from keras_tfm.cli.kept_memory import VARIABLE
from keras_tfm.cli.kept_memory import can_choose
from keras_tfm.cli.kept_memory import keep_memory
from keras_tfm.cli.kept_memory import tunables

ON_GLIBC = can_choose({})


@pytest.fixture
def started(monkeypatch):
    """Return what the process would be replaced by, in a bare environment."""
    begun = []
    monkeypatch.setattr(os, "execv", lambda *call: begun.append(call))
    monkeypatch.setattr(os, "environ", {"PATH": "/bin"})
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "a", "train"])
    return begun


@pytest.mark.parametrize("command", ["train", "quickstart"])
def test_a_training_starts_anew_with_the_same_command_line(started, command):
    keep_memory([command, "--folder", "x"])
    expected = [(sys.executable, [sys.executable, "-m", "a", "train"])]
    assert started == expected * ON_GLIBC
    assert os.environ.get(VARIABLE) == (tunables() if ON_GLIBC else None)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["translate", "train"]])
def test_other_commands_go_on_as_they_are(started, arguments):
    keep_memory(arguments)
    assert not started


@pytest.mark.parametrize(
    "chosen",
    [
        {VARIABLE: ""},
        {"LD_PRELOAD": "libjemalloc.so"},
        {"MALLOC_ARENA_MAX": "2"},
    ],
)
def test_a_choice_already_made_is_left_alone(chosen):
    assert not can_choose({"PATH": "/bin", **chosen})


def test_another_c_library_is_left_alone(monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "confstr", unknown)
    assert not can_choose({})
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not can_choose({})


@pytest.mark.skipif(not ON_GLIBC, reason="glibc's malloc is set up here")
def test_the_process_is_replaced_once_and_takes_the_settings(fresh_process):
    # Without them, 64 MiB are given back to the kernel as soon as freed.
    snippet = """
        import os, resource, sys

        sys.argv[0] = "keras-tfm"  # Imports nothing heavy.
        from keras_tfm.cli.kept_memory import keep_memory

        print(os.getpid(), flush=True)
        keep_memory(["train"])
        if sys.argv[1:]:
            sys.exit("The arguments are " + repr(sys.argv))

        def faults():
            for _ in range(20):
                bytearray(2**26)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

        first = faults()
        print(faults() - first)
    """
    bare = {"LD_PRELOAD": None, VARIABLE: None}
    kept = {name: os.environ.pop(name, None) for name in bare}
    try:
        first, second, faults = fresh_process(snippet).split()
    finally:
        os.environ.update({k: v for k, v in kept.items() if v is not None})
    assert first == second
    assert int(faults) < 1000

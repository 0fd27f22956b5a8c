"""A report reads well, and the gravest comes first."""

from keras_tfm.export.jit_report import AGAIN
from keras_tfm.export.jit_report import JitFinding
from keras_tfm.export.jit_report import make_report

BLOCKED = JitFinding("block/tokens", "`StringLower`", "No strings.", "Go.")
AGAIN_FOUND = JitFinding("", "input a", "Any size.", "Pad.", AGAIN)


def test_a_finding_is_one_line():
    assert str(BLOCKED) == (
        "blocked: `StringLower` in block/tokens. No strings. Go."
    )
    assert str(AGAIN_FOUND) == "compiled again: input a. Any size. Pad."


def test_the_gravest_comes_first_and_each_once():
    report = make_report("m", [AGAIN_FOUND, BLOCKED, BLOCKED], "a (2,)")
    assert list(report) == [BLOCKED, AGAIN_FOUND]
    assert len(report) == 2
    assert report.blocked
    assert str(report).splitlines() == [
        "XLA cannot compile 'm' (a (2,)):",
        f"- {BLOCKED}",
        f"- {AGAIN_FOUND}",
    ]


def test_a_model_that_is_compiled_again_is_not_blocked():
    report = make_report("m", [AGAIN_FOUND], "")
    assert not report.blocked
    assert str(report).startswith("Nothing keeps XLA from compiling 'm', but:")
    assert str(make_report("m", [], "")) == (
        "Nothing keeps XLA from compiling 'm'."
    )

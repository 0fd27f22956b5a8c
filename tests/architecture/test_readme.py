"""The README promises the commands that `.ci/run` really runs."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
CI = ROOT / ".ci" / "run"


def ci_setting(name):
    (value,) = re.findall(
        rf'^{name}="(.+)"$', CI.read_text(encoding="utf-8"), re.MULTILINE
    )
    return value


def code_blocks():
    text = README.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```.*?\n(.*?)^```", text, re.M | re.S))


def test_the_test_command_is_the_one_that_ci_runs():
    assert ci_setting("test_command") in code_blocks()


def test_the_extras_are_the_ones_that_ci_installs():
    assert f".[{ci_setting('extras')}]" in code_blocks()

"""The defaults that the help shows are those that hold."""

import dataclasses
import inspect
import typing

import pytest

from keras_tfm.cli import train_options
from keras_tfm.cli.train import _SETTINGS
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.translation import Translator


def shown(option):
    name = "".join(part.title() for part in option.split("_")) + "Option"
    info = typing.get_args(getattr(train_options, name))[1]
    written = (info.default, *(info.param_decls or ()))
    expected = "--" + option.replace("_", "-")
    assert any(str(name).startswith(expected) for name in written)
    return info.show_default


@pytest.mark.parametrize(
    "option",
    [
        "tokens_per_batch",
        "max_shapes",
        "peak_rate",
        "warmup_steps",
        "label_smoothing",
        "seed",
    ],
)
def test_the_defaults_of_the_settings_are_shown(option):
    fields = {f.name: f.default for f in dataclasses.fields(TrainingSettings)}
    assert float(shown(option)) == fields[_SETTINGS[option]]


def test_every_setting_but_the_length_has_an_option():
    fields = {field.name for field in dataclasses.fields(TrainingSettings)}
    assert fields - set(_SETTINGS.values()) == {"max_sequence_length"}


def test_the_defaults_of_the_tokenizers_are_shown():
    defaults = inspect.signature(Translator.from_pairs).parameters
    assert shown("tokenizer") == defaults["tokenizer"].default
    assert int(shown("vocabulary_size")) == defaults["vocabulary_size"].default
    assert (shown("joint") == "joint") is defaults["joint"].default


def test_the_longest_text_is_that_of_the_translator():
    defaults = inspect.signature(Translator.from_pairs).parameters
    longest = int(shown("max_sequence_length"))
    assert longest == defaults["max_target_length"].default
    assert longest == defaults["source_lengths"].default[-1]

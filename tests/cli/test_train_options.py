"""The defaults that the help shows are those that hold."""

import inspect
import typing

from keras_tfm.cli import train_options
from keras_tfm.cli.train_options import panel_option
from keras_tfm.cli.train_request import CHECKPOINT_MINUTES
from keras_tfm.cli.train_request import MAX_SEQUENCE_LENGTH
from keras_tfm.tasks.translation import Translator


def shown(option):
    name = "".join(part.title() for part in option.split("_")) + "Option"
    info = typing.get_args(getattr(train_options, name))[1]
    return info.show_default


def test_an_option_has_its_name_text_and_panel():
    info = panel_option("--steps", "Updates.", "End", "7")
    assert (info.default, info.help) == ("--steps", "Updates.")
    assert (info.rich_help_panel, info.show_default) == ("End", "7")
    assert panel_option("--steps", "Updates.", "End").show_default is False


def test_checkpoints_are_as_often_as_shown():
    assert float(shown("checkpoint_minutes")) == CHECKPOINT_MINUTES


def test_the_defaults_of_the_tokenizers_are_shown():
    defaults = inspect.signature(Translator.from_pairs).parameters
    assert shown("tokenizer") == defaults["tokenizer"].default
    assert int(shown("vocabulary_size")) == defaults["vocabulary_size"].default
    assert (shown("joint") == "joint") is defaults["joint"].default


def test_the_longest_text_is_that_of_the_translator():
    defaults = inspect.signature(Translator.from_pairs).parameters
    longest = int(shown("max_sequence_length"))
    assert longest == MAX_SEQUENCE_LENGTH
    assert longest == defaults["max_target_length"].default
    assert longest == defaults["source_lengths"].default[-1]

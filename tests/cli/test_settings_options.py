"""The defaults that the help shows are those of `TrainingSettings`."""

import dataclasses
import typing

import pytest

from keras_tfm.cli import settings_options
from keras_tfm.cli.settings_options import Batching
from keras_tfm.cli.settings_options import OptimizerName
from keras_tfm.cli.train_request import SETTINGS
from keras_tfm.tasks.settings import BATCHINGS
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.training.optimizers import OPTIMIZERS

DEFAULTS = {f.name: f.default for f in dataclasses.fields(TrainingSettings)}
# These say in words what `None` means.
IN_WORDS = {"row_length", "decay_steps", "clip_norm", "snapshot_steps"}
# The command line has a default of its own, shown among the model's options.
ELSEWHERE = {"max_sequence_length"}


def shown(option):
    name = "".join(part.title() for part in option.split("_")) + "Option"
    info = typing.get_args(getattr(settings_options, name))[1]
    assert info.default == "--" + option.replace("_", "-")
    return info.show_default


@pytest.mark.parametrize("option", sorted({*SETTINGS} - IN_WORDS - ELSEWHERE))
def test_the_defaults_of_the_settings_are_shown(option):
    default = DEFAULTS[SETTINGS[option]]
    text = shown(option).partition(":")[0]
    assert (
        text == default
        if isinstance(default, str)
        else (float(text) == default)
    )


@pytest.mark.parametrize("option", sorted(IN_WORDS))
def test_what_is_not_a_number_is_shown_in_words(option):
    assert DEFAULTS[SETTINGS[option]] is None
    assert isinstance(shown(option), str)


def test_every_setting_has_an_option():
    assert set(SETTINGS.values()) == set(DEFAULTS)


def test_the_choices_are_those_of_the_settings():
    assert tuple(Batching) == BATCHINGS
    assert tuple(OptimizerName) == OPTIMIZERS

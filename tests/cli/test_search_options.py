"""Options name one way to choose tokens, and make what chooses them so."""

import pytest

from keras_tfm.cli.search_options import PenaltyName
from keras_tfm.cli.search_options import SearchOptions
from keras_tfm.generation.beam_search import BeamSearchGenerator
from keras_tfm.generation.constraints import NoRepeatNgram
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.generation.sampling import SamplingGenerator


class Five:
    """A translator, as far as a search is concerned."""

    max_target_length = 5
    max_length_factor = None
    generator = None


def generator(**options):
    return SearchOptions.from_options(**options).generator(Five())


def test_without_options_the_likeliest_token_is_taken():
    made = generator()
    assert type(made) is GreedyGenerator
    assert (made.max_length, made.min_length, made.constraints) == (5, 1, ())
    assert SearchOptions().given() == ()


def test_beams_make_a_search_for_the_best_alone():
    made = generator(beams=3, coverage_penalty=0.2, min_length=2)
    assert type(made) is BeamSearchGenerator
    assert (made.max_length, made.num_beams, made.num_hypotheses) == (5, 3, 1)
    assert (made.coverage_penalty, made.min_length) == (0.2, 2)
    assert generator(beams=3, nbest=2).num_hypotheses == 2


@pytest.mark.parametrize(
    ("options", "divisor"),
    [
        # Of 10 tokens: (15 / 6) ** 0.6 and so on.
        ({}, 1.733),
        ({"length_penalty": 1.0}, 2.5),
        ({"penalty": PenaltyName.gnmt, "length_penalty": 0.0}, 1.0),
        ({"penalty": PenaltyName.mean}, 10.0),
        ({"penalty": PenaltyName.mean, "length_penalty": 0.5}, 3.162),
        ({"penalty": PenaltyName.none}, 1.0),
    ],
)
def test_a_penalty_divides_by_what_its_name_says(options, divisor):
    made = generator(beams=2, **options)
    assert float(made.length_penalty(10)) == pytest.approx(divisor, abs=1e-3)


def test_samples_are_drawn_as_told():
    made = generator(sample=True, temperature=0.7, top_k=3, top_p=0.9, seed=11)
    assert type(made) is SamplingGenerator
    assert (made.temperature, made.top_k, made.top_p, made.seed) == (
        *(0.7, 3, 0.9),
        11,
    )
    plain = generator(sample=True)
    assert (plain.temperature, plain.top_k, plain.top_p, plain.seed) == (
        *(1.0, None, None),
        0,
    )


@pytest.mark.parametrize("more", [{}, {"beams": 2}, {"sample": True}])
def test_every_search_can_be_kept_from_repeating(more):
    [constraint] = generator(no_repeat_ngram=3, **more).constraints
    assert isinstance(constraint, NoRepeatNgram)
    assert constraint.size == 3


def test_a_translator_gets_the_search_and_keeps_a_length_of_its_own():
    translator = Five()
    SearchOptions(beams=2).apply(translator)
    assert translator.generator.num_beams == 2
    assert translator.max_length_factor is None
    SearchOptions(max_length_factor=1.5).apply(translator)
    assert translator.generator.num_beams == 1
    assert translator.max_length_factor == 1.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sample": True, "beams": 4},
            "give one. Received: --sample and --beams 4.",
        ),
        ({"temperature": 0.5}, "--temperature needs --sample: without it"),
        ({"top_k": 3}, "--top-k needs --sample"),
        ({"top_p": 0.5, "beams": 2}, "--top-p needs --sample"),
        ({"seed": 0}, "--seed needs --sample"),
        (
            {"length_penalty": 0.6},
            "--length-penalty needs --beams of 2 or more: it weighs",
        ),
        ({"penalty": PenaltyName.none}, "--penalty needs --beams of 2"),
        (
            {"coverage_penalty": 0.2, "sample": True},
            "--coverage-penalty needs --beams of 2",
        ),
        (
            {"beams": 2, "penalty": PenaltyName.none, "length_penalty": 1.0},
            "--length-penalty says how strong a penalty is, and --penalty none",
        ),
        ({"beams": 4, "nbest": 5}, "Received: --nbest 5 and --beams 4."),
        ({"nbest": 2}, "Received: --nbest 2 and --beams 1."),
        (
            {"sample": True, "nbest": 3},
            "one translation of a text. Received: --nbest 3. For another one",
        ),
        (
            {"sample": True, "temperature": 0.0},
            "--temperature=0.0",
        ),
        ({"sample": True, "top_p": 0.0}, "at most 1. Received: 0.0."),
        ({"sample": True, "top_p": 1.1}, "at most 1. Received: 1.1."),
        ({"max_length_factor": -1.0}, "--max-length-factor=-1.0"),
        (
            {"beams": 2, "length_penalty": float("nan")},
            "--length-penalty must be a finite number. Received: nan.",
        ),
        (
            {"beams": 2, "coverage_penalty": float("inf")},
            "--coverage-penalty must be a finite number. Received: inf.",
        ),
    ],
)
def test_options_that_do_not_fit_together_are_named(options, message):
    with pytest.raises(ValueError, match="--") as error:
        SearchOptions.from_options(**options)
    assert message in str(error.value)


def test_a_search_that_writes_more_than_the_translator_can_is_refused():
    assert generator(min_length=5).min_length == 5
    with pytest.raises(ValueError, match=r"at most 5, .* Received: 6\."):
        generator(min_length=6)

"""The options that say how the tokens of a translation are chosen."""

from __future__ import annotations

import dataclasses
import math
from enum import StrEnum
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_tfm.checks import check_positive

if TYPE_CHECKING:
    from keras_tfm.generation.generator import Generator
    from keras_tfm.generation.length_penalty import LengthPenalty
    from keras_tfm.tasks.translation import Translator

_PANEL = "Search"


class PenaltyName(StrEnum):
    """What the log-probability of a translation is divided by."""

    gnmt = "gnmt"
    mean = "mean"
    none = "none"


BeamsOption = Annotated[
    int,
    typer.Option(
        "--beams",
        min=1,
        help="Beginnings that are kept at every token; 1 takes the likeliest "
        "token each time.",
        rich_help_panel=_PANEL,
    ),
]
LengthPenaltyOption = Annotated[
    float | None,
    typer.Option(
        "--length-penalty",
        help="With --beams: above 0 favours long translations, below 0 short "
        "ones.",
        rich_help_panel=_PANEL,
        show_default="0.6; 1 with --penalty mean",
    ),
]
PenaltyOption = Annotated[
    PenaltyName | None,
    typer.Option(
        "--penalty",
        help="With --beams: divide a log-probability by ((5 + tokens) / 6)^P, "
        "by tokens^P, or by nothing; P is --length-penalty.",
        rich_help_panel=_PANEL,
        show_default="gnmt",
    ),
]
CoveragePenaltyOption = Annotated[
    float | None,
    typer.Option(
        "--coverage-penalty",
        min=0,
        help="With --beams: favour translations that have looked at all of "
        "the source, such as 0.2.",
        rich_help_panel=_PANEL,
        show_default="0",
    ),
]
MinLengthOption = Annotated[
    int | None,
    typer.Option(
        "--min-length",
        min=1,
        help="Fewest tokens of a translation, its end included.",
        rich_help_panel=_PANEL,
        show_default="1",
    ),
]
MaxLengthFactorOption = Annotated[
    float | None,
    typer.Option(
        "--max-length-factor",
        help="A translation has at most this many times the tokens of its "
        "source.",
        rich_help_panel=_PANEL,
        show_default="the translator's own",
    ),
]
NoRepeatNgramOption = Annotated[
    int | None,
    typer.Option(
        "--no-repeat-ngram",
        min=1,
        help="Never write so many tokens in a row for the second time.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SampleOption = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Draw each token at random, as likely as the model says.",
        rich_help_panel=_PANEL,
    ),
]
TemperatureOption = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        help="With --sample: below 1 likely tokens become likelier.",
        rich_help_panel=_PANEL,
        show_default="1",
    ),
]
TopKOption = Annotated[
    int | None,
    typer.Option(
        "--top-k",
        min=1,
        help="With --sample: draw from this many likeliest tokens.",
        rich_help_panel=_PANEL,
        show_default="all",
    ),
]
TopPOption = Annotated[
    float | None,
    typer.Option(
        "--top-p",
        help="With --sample: draw from the fewest likeliest tokens whose "
        "probabilities sum to this.",
        rich_help_panel=_PANEL,
        show_default="1",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="With --sample: another seed draws another translation.",
        rich_help_panel=_PANEL,
        show_default="0",
    ),
]

_OF_BEAMS = ("length_penalty", "penalty", "coverage_penalty")
_OF_SAMPLES = ("temperature", "top_k", "top_p", "seed")


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How tokens are chosen, as the options say it.

    Attributes:
        beams: Positive integer.
        length_penalty: Float, or `None` for the penalty's own.
        penalty: `PenaltyName`, or `None` for `gnmt`.
        coverage_penalty: Float of at least 0, or `None` for none.
        min_length: Positive integer, or `None` for 1.
        max_length_factor: Positive float, or `None` for the translator's own.
        no_repeat_ngram: Positive integer, or `None`.
        nbest: Positive integer, the translations of a text, or `None` for the
            best alone.
        sample: Boolean.
        temperature: Positive float, or `None` for 1.
        top_k: Positive integer, or `None` for all tokens.
        top_p: Float in (0, 1], or `None` for 1.
        seed: Integer, or `None` for 0.
    """

    beams: int = 1
    length_penalty: float | None = None
    penalty: PenaltyName | None = None
    coverage_penalty: float | None = None
    min_length: int | None = None
    max_length_factor: float | None = None
    no_repeat_ngram: int | None = None
    nbest: int | None = None
    sample: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    @classmethod
    def from_options(cls, **options: Any) -> SearchOptions:
        """Make one of options that fit together.

        Raises:
            ValueError: If they do not, or a number is out of range.

        Example:
            >>> SearchOptions.from_options(beams=4, nbest=2).given()
            ('--beams', '--nbest')
        """
        search = cls(**options)
        search.check()
        return search

    def given(self) -> tuple[str, ...]:
        """Return the names of the options that change something."""
        return tuple(
            _option(field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        )

    def check(self) -> None:
        """Raise `ValueError` unless the options fit together."""
        self._check_sample()
        self._check_beams()
        for name in ("temperature", "max_length_factor"):
            value = getattr(self, name)
            if value is not None:
                check_positive(_option(name), value)
        for name in ("length_penalty", "coverage_penalty"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(
                    f"{_option(name)} must be a finite number. Received: "
                    f"{value}."
                )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(
                "--top-p must be a number above 0 and at most 1. Received: "
                f"{self.top_p}."
            )

    def generator(self, translator: Translator) -> Generator:
        """Make what chooses the tokens of a translator.

        Args:
            translator: Its `max_target_length` is the most tokens.

        Raises:
            ValueError: If `--min-length` is more than that.
        """
        from keras_tfm.generation.beam_search import BeamSearchGenerator
        from keras_tfm.generation.constraints import NoRepeatNgram
        from keras_tfm.generation.greedy import GreedyGenerator
        from keras_tfm.generation.sampling import SamplingGenerator

        longest, shortest = translator.max_target_length, self.min_length or 1
        if shortest > longest:
            raise ValueError(
                f"--min-length must be at most {longest}, the most tokens that "
                f"this translator writes. Received: {shortest}."
            )
        arguments: dict[str, Any] = {"min_length": shortest}
        if self.no_repeat_ngram is not None:
            arguments["constraints"] = [NoRepeatNgram(self.no_repeat_ngram)]
        if self.sample:
            return SamplingGenerator(
                longest,
                temperature=self.temperature or 1.0,
                top_k=self.top_k,
                top_p=self.top_p,
                seed=self.seed or 0,
                **arguments,
            )
        if self.beams == 1:
            return GreedyGenerator(longest, **arguments)
        return BeamSearchGenerator(
            longest,
            num_beams=self.beams,
            # A search for fewer is over sooner, with the same best one.
            num_hypotheses=self.nbest or 1,
            length_penalty=self._length_penalty(),
            coverage_penalty=self.coverage_penalty or 0.0,
            **arguments,
        )

    def apply(self, translator: Translator) -> None:
        """Let a translator choose its tokens so from now on."""
        translator.generator = self.generator(translator)
        if self.max_length_factor is not None:
            translator.max_length_factor = self.max_length_factor

    def _check_sample(self) -> None:
        """Raise `ValueError` if what is drawn does not fit together."""
        if not self.sample:
            for name in _OF_SAMPLES:
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"{_option(name)} needs --sample: without it nothing "
                        "is drawn."
                    )
        elif self.beams > 1:
            raise ValueError(
                "--sample draws one translation, --beams looks for the best: "
                f"give one. Received: --sample and --beams {self.beams}."
            )
        elif self.nbest is not None and self.nbest > 1:
            raise ValueError(
                "--sample draws one translation of a text. Received: --nbest "
                f"{self.nbest}. For another one give another --seed."
            )

    def _check_beams(self) -> None:
        """Raise `ValueError` if the search for the best does not fit."""
        for name in _OF_BEAMS:
            if getattr(self, name) is not None and self.beams == 1:
                raise ValueError(
                    f"{_option(name)} needs --beams of 2 or more: it weighs "
                    "translations against each other, and here is one."
                )
        if self.penalty == PenaltyName.none and self.length_penalty is not None:
            raise ValueError(
                "--length-penalty says how strong a penalty is, and --penalty "
                "none is without one: leave one of the two out."
            )
        if self.nbest is not None and self.nbest > self.beams:
            raise ValueError(
                "--nbest must be at most --beams. Received: --nbest "
                f"{self.nbest} and --beams {self.beams}."
            )

    def _length_penalty(self) -> LengthPenalty:
        from keras_tfm.generation.length_penalty import GNMTLengthPenalty
        from keras_tfm.generation.length_penalty import MeanLengthPenalty
        from keras_tfm.generation.length_penalty import NoLengthPenalty

        if self.penalty == PenaltyName.none:
            return NoLengthPenalty()
        kind = {PenaltyName.mean: MeanLengthPenalty}.get(
            self.penalty, GNMTLengthPenalty
        )
        if self.length_penalty is None:
            return kind()
        return kind(self.length_penalty)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"

"""How fast a training is, and how much time it still takes."""

from __future__ import annotations

import statistics
from collections import deque

# Steps that the speed is measured on, and how many besides those that compile
# there must be.
_RECENT = 300
_FEWEST = 3
# A step this much slower than the fast ones compiled or wrote a checkpoint.
_OUTLIER = 10.0


class Meter:
    """Count steps and time, and say what is left.

    Args:
        start_step: Non-negative integer, the updates made before.
        now: Float, in seconds, of any clock that does not go back.
        steps: Positive integer, the updates to stop at, or `None`.
        max_seconds: Positive float, the time to stop at, or `None`.
        tokens_per_step: Float, the real tokens of a batch, on average.
        num_programs: Positive integer, the steps that compile a program.

    Example:
        >>> meter = Meter(0, now=0.0, steps=20, tokens_per_step=50)
        >>> for second in (32, 34, 36, 38):
        ...     meter.add(now=second)
        >>> meter.seconds_left(), meter.tokens_per_second(), meter.share()
        (32.0, 25.0, 0.2)
    """

    def __init__(
        self,
        start_step: int,
        now: float,
        steps: int | None = None,
        max_seconds: float | None = None,
        tokens_per_step: float = 0.0,
        num_programs: int = 1,
    ) -> None:
        self.start_step = self.step = start_step
        self.steps = steps
        self.max_seconds = max_seconds
        self.tokens_per_step = tokens_per_step
        self.num_programs = num_programs
        self._began = self._now = now
        self._durations: deque[float] = deque(maxlen=_RECENT)
        self._num_validations = 0
        # Of the last one.
        self._validation_step = start_step
        self._validation_seconds = 0.0

    def add(self, now: float, validated: bool = False) -> None:
        """Count a step that ended now.

        Args:
            now: Float, in seconds, of the same clock as before.
            validated: Boolean. Whether the model was validated after it. That
                takes time of its own, which does not slow the other steps.
        """
        self.step += 1
        seconds = now - self._now
        self._now = now
        if validated:
            self._num_validations += 1
            self._validation_step = self.step
            self._validation_seconds = seconds
        else:
            self._durations.append(seconds)

    def seconds_per_step(self) -> float | None:
        """Return the time of a step, or `None` while it is not known."""
        if len(self._durations) < self.num_programs + _FEWEST:
            return None
        # Not the median: at first most steps may be those that compile.
        fast = sorted(self._durations)[len(self._durations) // 4]
        usual = _OUTLIER * fast
        return statistics.fmean(t for t in self._durations if t <= usual)

    def tokens_per_second(self) -> float:
        """Return the real tokens a second, 0 while they are not known."""
        seconds = self.seconds_per_step()
        return self.tokens_per_step / seconds if seconds else 0.0

    def seconds_left(self) -> float | None:
        """Return the time until the end that comes first, if it is known."""
        ends = []
        if self.max_seconds is not None:
            ends.append(self.max_seconds - (self._now - self._began))
        seconds = self.seconds_per_step()
        if self.steps is not None and seconds is not None:
            left = self.steps - self.step
            ends.append(left * (seconds + self._validation_seconds_per_step()))
        return max(min(ends), 0.0) if ends else None

    def _validation_seconds_per_step(self) -> float:
        # Each takes as long as the last one: the first compiles, and early
        # translations are long.
        steps = self._validation_step - self.start_step
        if not steps:
            return 0.0
        return self._num_validations * self._validation_seconds / steps

    def share(self) -> float:
        """Return the share of this session that is done, from 0 to 1."""
        shares = [0.0]
        if self.steps is not None and self.steps > self.start_step:
            shares.append(
                (self.step - self.start_step) / (self.steps - self.start_step)
            )
        if self.max_seconds is not None:
            shares.append((self._now - self._began) / self.max_seconds)
        return min(max(shares), 1.0)


def duration(seconds: float) -> str:
    """Write a time as a clock does.

    Example:
        >>> duration(59.6), duration(3725)
        ('1:00', '1:02:05')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{seconds:02}"
    return f"{minutes}:{seconds:02}"

"""Speed, time left and share, by a clock that the test sets."""

import pytest

from keras_tfm.cli.meter import Meter
from keras_tfm.cli.meter import duration


def run(meter, durations, now=0.0):
    for seconds in durations:
        now += seconds
        meter.add(now)
    return meter


def test_nothing_is_said_before_something_is_known():
    meter = Meter(0, 0.0, steps=10, tokens_per_step=7)
    assert meter.seconds_left() is None
    assert meter.tokens_per_second() == 0
    assert meter.share() == 0
    assert run(meter, [1, 1, 1]).seconds_left() is None


def test_steps_that_compile_do_not_count():
    meter = Meter(0, 0.0, steps=107, tokens_per_step=6, num_programs=4)
    run(meter, [20, 1, 30, 1, 25, 28, 1])
    assert meter.seconds_left() == 100
    assert meter.tokens_per_second() == 6


def test_the_end_that_comes_first_is_told():
    steps_first = Meter(0, 0.0, steps=10, max_seconds=100)
    assert run(steps_first, [1] * 5).seconds_left() == 5
    time_first = Meter(0, 0.0, steps=1000, max_seconds=100)
    assert run(time_first, [1] * 5).seconds_left() == 95
    only_time = Meter(0, 0.0, max_seconds=100)
    assert run(only_time, [1]).seconds_left() == 99


def test_a_resumed_training_counts_on():
    meter = run(Meter(90, 0.0, steps=100), [2] * 5)
    assert (meter.step, meter.seconds_left(), meter.share()) == (95, 10, 0.5)


def test_no_time_is_left_after_the_end():
    meter = run(Meter(0, 0.0, steps=3, max_seconds=2), [1] * 5)
    assert (meter.seconds_left(), meter.share()) == (0, 1)


def test_the_speed_is_that_of_the_last_steps():
    meter = run(Meter(0, 0.0, tokens_per_step=10), [5] * 50 + [1] * 300)
    assert meter.tokens_per_second() == 10


def test_a_validation_does_not_slow_the_other_steps():
    meter = Meter(0, 0.0, steps=1000, tokens_per_step=6)
    run(meter, [1] * 9)
    # Not ten times as long as a step: no outlier.
    meter.add(9 + 5, validated=True)
    assert meter.step == 10
    assert meter.tokens_per_second() == 6


def test_the_validations_to_come_take_time():
    meter = run(Meter(200, 0.0, steps=1200), [1] * 99)
    assert meter.seconds_left() == 901
    meter.add(99 + 70, validated=True)
    # Nine more, one every hundred steps, as long as the last one.
    assert meter.seconds_left() == 900 + 9 * 70
    run(meter, [1] * 99, now=99 + 70)
    meter.add(99 + 70 + 99 + 31, validated=True)
    assert meter.seconds_left() == 800 + 8 * 31
    run(meter, [1] * 50, now=99 + 70 + 99 + 31)
    assert meter.seconds_left() == pytest.approx(750 + 7.5 * 31)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (9.4, "0:09"), (59.9, "1:00"), (3600, "1:00:00")],
)
def test_durations_read_like_a_clock(seconds, text):
    assert duration(seconds) == text

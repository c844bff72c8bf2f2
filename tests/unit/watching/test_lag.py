"""How far behind the clock a job is, and what becomes of that."""

from __future__ import annotations

import pytest

from spark_pace.watching.figures import Lag, Reached, lag_of


def batches(*lags: float, every: float = 20.0, busy: float = 0.9) -> list[Reached]:
    """Batches that end so many seconds apart, with so far the newest event behind the clock."""
    return [
        Reached(1_000_000 + every * place, 1_000_000 + every * place - lag, every, busy * every)
        for place, lag in enumerate(lags)
    ]


def kind(seen: list[Reached]) -> str | None:
    lag = lag_of(seen)
    return None if lag is None else lag.kind


def test_a_job_falls_behind_or_its_input_does() -> None:
    busy, idle = (lag_of(batches(100, 110, 121, busy=share)) for share in (0.9, 0.1))
    told = "the newest event is 0:02:01 behind the clock, 0:00:21 more than 0:00:40 before"
    assert busy == Lag("falls behind", f"The job falls behind: {told}. It is too slow for its input.")
    assert idle == Lag(
        "input", f"The input falls behind: {told}, and the job waits for it. What sends it is slow."
    )


def test_a_job_that_catches_up_says_when() -> None:
    assert lag_of(batches(7200, 7000, 6800)) == Lag(
        "catches up",
        "The job is behind: the newest event is 1:53:20 behind the clock. At this speed it has caught up "
        "in about 0:11:20.",
    )


@pytest.mark.parametrize(
    "seen",
    [
        batches(100),
        batches(0, 30, 59),
        batches(3600, 3601, 3599),  # an old stream at the speed of the clock
        batches(100, 120, 140),  # what comes is no newer
        batches(7200, 5000, 3000, every=5.0),  # too short to know the speed
    ],
)
def test_nothing_is_said_of_a_lag_that_stays_or_is_small_or_of_which_little_is_known(
    seen: list[Reached],
) -> None:
    assert kind(seen) is None


def test_what_is_long_ago_does_not_count() -> None:
    rise_and_fall = [100 + 10 * place for place in range(60)] + [700 - 12 * place for place in range(12)]
    assert kind(batches(*rise_and_fall)) == "catches up"

"""How far behind the clock a job is, and what becomes of that."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from spark_pace.io.metrics import BatchReport, metrics_row
from spark_pace.watching.history import NOTHING
from spark_pace.watching.troubles import lag_of
from tests.support.watched import BEGAN, QUIET

Batch = tuple[datetime, BatchReport]


def batches(*lags: float, every: float = 20.0, busy: float = 0.9) -> list[Batch]:
    """Batches that end so many seconds apart, with so far the newest event behind the clock."""
    made = []
    for place, lag in enumerate(lags):
        at = BEGAN + timedelta(seconds=every * place)
        times = {"max_time_us": int((at.timestamp() - lag) * 1e6), "frontier_us": None, "seconds": every}
        values = {**QUIET, **times, "batch_seconds": busy * every}
        made.append((at, BatchReport(batch_id=place, matches={}, **values)))
    return made


def lag(seen: list[Batch], later: float = 0.0) -> tuple[str, str] | None:
    history = NOTHING
    for at, batch in seen:
        history = history.after(metrics_row(batch, at))
    return lag_of(history, seen[-1][0] + timedelta(seconds=later))


def kind(seen: list[Batch], later: float = 0.0) -> str | None:
    found = lag(seen, later)
    return None if found is None else found[0]


def test_a_job_falls_behind_or_its_input_does() -> None:
    busy, idle = (lag(batches(100, 110, 121, busy=share)) for share in (0.9, 0.1))
    told = "the newest event is 0:02:01 behind the clock, 0:00:21 more than 0:00:40 before"
    assert busy == ("falls behind", f"The job falls behind: {told}. It is too slow for its input.")
    assert idle == (
        "input",
        f"The input falls behind: {told}, and the job waits for it. What sends it is slow.",
    )


def test_a_job_that_catches_up_says_when() -> None:
    assert lag(batches(7200, 7000, 6800)) == (
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
        batches(8e8, 7e8, 6e8, busy=0.1),  # old events, of which none waits
    ],
)
def test_nothing_is_said_of_a_lag_that_stays_or_is_small_or_of_which_little_is_known(
    seen: list[Batch],
) -> None:
    assert kind(seen) is None


def test_what_is_long_ago_does_not_count() -> None:
    rise_and_fall = [100 + 10 * place for place in range(60)] + [700 - 12 * place for place in range(12)]
    assert kind(batches(*rise_and_fall)) == "catches up"


def test_a_lag_is_told_as_long_as_it_is_of_now() -> None:
    assert kind(batches(100, 110, 121), 60) == "falls behind" and kind(batches(100, 110, 121), 61) is None

"""How much batches may read: caps on a machine whose speed is known. No Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_pace.job_file.pace import Admission, Batch, Pace

FIRST = 100_000
USUAL = Admission()


def machine(per_second: float, fixed: float = 0.5) -> Callable[[int], float]:
    """What a batch of some records takes."""
    return lambda amount: fixed + amount / per_second


def backlog(takes: Callable[[int], float], batches: int, settings: Admission = USUAL) -> list[Pace]:
    """The paces of a job with more to read than it ever can; nothing waits for the frontier."""
    paces = [settings.begin(FIRST)]
    for _ in range(batches):
        cap = paces[-1].cap
        paces.append(settings.after(paces[-1], Batch(cap, takes(cap), cap, 0)))
    return paces


def full(pace: Pace, seconds: float, pending: int = 0) -> Batch:
    return Batch(pace.cap, seconds, pace.cap, pending)


def test_the_caps_of_a_backlog_double_up_to_what_the_target_allows_and_stay() -> None:
    caps = [pace.cap for pace in backlog(machine(200_000), 12)]
    assert caps[:4] == [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST]
    assert caps == sorted(caps)
    assert caps[-1] == pytest.approx(4.5 * 200_000, rel=0.02)


@pytest.mark.parametrize("per_second", [300, 5_000, 40_000, 200_000, 3_000_000])
def test_no_batch_but_the_first_takes_twice_the_target(per_second: float) -> None:
    takes = machine(per_second)
    seconds = [takes(pace.cap) for pace in backlog(takes, 40)]
    assert max(seconds[1:]) <= 2 * USUAL.batch_seconds
    assert 0.8 * USUAL.batch_seconds < seconds[-1] < 1.2 * USUAL.batch_seconds


def test_a_batch_may_take_as_long_as_the_trigger_leaves() -> None:
    assert USUAL.every(60.0) == replace(USUAL, batch_seconds=60.0)
    assert USUAL.every(2.0) == USUAL


def test_a_cold_first_batch_does_not_end_the_warm_up() -> None:
    pace = USUAL.begin(FIRST)
    pace = USUAL.after(pace, full(pace, USUAL.batch_seconds))
    assert (pace.cap, pace.doublings) == (2 * FIRST, USUAL.warm_up - 1)


def test_the_cap_doubles_as_often_as_it_may_and_then_moves_by_the_deviation() -> None:
    settings = Admission(warm_up=2, max_deviation=0.5)
    caps = [pace.cap for pace in backlog(machine(1e9), 5, settings)]
    assert caps == [FIRST, 2 * FIRST, 4 * FIRST, 6 * FIRST, 9 * FIRST, 13.5 * FIRST]


def test_a_small_quick_batch_changes_nothing() -> None:
    pace = USUAL.begin(FIRST)
    assert USUAL.after(pace, Batch(FIRST // 2 - 1, 0.5, 10, 0)) == pace
    assert USUAL.after(pace, Batch(0, 9.0, 0, 0)) == pace


def test_a_slower_job_reads_less_at_once_and_its_rate_follows_by_the_deviation() -> None:
    warm = backlog(machine(200_000), 12)[-1]
    slower = USUAL.after(warm, full(warm, 50.0))
    assert slower.rate == pytest.approx(0.75 * warm.rate)
    assert slower.cap == pytest.approx(2 * warm.cap / 50.0 * USUAL.batch_seconds, rel=0.01)


def test_the_rate_falls_while_most_of_what_is_read_has_to_wait_but_not_below_the_first() -> None:
    pace = replace(backlog(machine(200_000), 12)[-1], pending=0)
    rates, pending = [pace.rate], 0
    for _ in range(20):
        pending += pace.cap
        pace = USUAL.after(pace, full(pace, pace.cap / 200_000 + 0.5, pending))
        rates.append(pace.rate)
    assert rates == sorted(rates, reverse=True)
    assert rates[1] == pytest.approx(0.75 * rates[0])
    assert rates[-1] == FIRST / USUAL.batch_seconds


def test_the_warm_up_stands_still_while_most_of_what_is_read_has_to_wait() -> None:
    pace = USUAL.begin(FIRST)
    waits = USUAL.after(pace, full(pace, 1.0, FIRST))
    assert (waits.cap, waits.doublings) == (FIRST, USUAL.warm_up)
    assert USUAL.after(waits, full(waits, 1.0, FIRST)).cap == 2 * FIRST


def test_a_job_that_does_next_to_nothing_still_reads_something() -> None:
    assert backlog(machine(0.001), 60)[-1].cap == FIRST // 100

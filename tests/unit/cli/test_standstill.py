"""A run says once that it waits for events, that none comes, that its stream stands, that it is behind."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from spark_pace.cli.run import Standstill, standing
from spark_pace.job_file import Clock, DeltaSource, JobSpec, read_job
from tests.support.commands import ROOT
from tests.unit.cli.test_run_and_status import progress

LONG = 3600.0
FILES = replace(read_job(ROOT / "conf" / "jobs" / "flights.yaml"), trigger_us=2_000_000)
WITH_CLOCK = replace(FILES, events=replace(FILES.events, clock=Clock(5_000_000, 30_000_000)))
NOW_US = int(time.time() * 1e6)


def test_the_line_says_what_waits_where_the_frontier_stands_and_what_would_move_it() -> None:
    batch = progress(pending=399, open=2, frontier_us=60_000_000, slowest_source=None)
    assert standing(batch, 30.0) == (
        "waiting: no batch has ended for 30 s; 399 events not yet passed by the frontier, "
        "which stands at 1970-01-01 00:01:00Z, and 2 selections open. "
        "Only a later event moves it, or a clock in events."
    )


def test_it_names_the_source_that_holds_the_frontier() -> None:
    told = standing(progress(pending=1, open=0, frontier_us=None, slowest_source="north"), 30.0)
    assert told.endswith(
        "1 event not yet passed by the frontier, which has not moved yet. "
        "Only a later event of the source north moves it, or a clock in events."
    )


class Said:
    """What is said, and a way to wait for it."""

    def __init__(self, spec: JobSpec, seconds: float) -> None:
        self.lines, self._more = list[str](), threading.Semaphore(0)
        self.standstill = Standstill(spec, self._say, seconds)

    def _say(self, line: str) -> None:
        self.lines.append(line)
        self._more.release()

    def last(self) -> str:
        assert self._more.acquire(timeout=10)
        return self.lines[-1]


@pytest.mark.parametrize("changes", [{"pending": 1}, {"pending": 0, "open": 3}])
def test_it_is_said_once_for_a_batch_where_windows_alone_are_open_too(changes: dict[str, Any]) -> None:
    said = Said(FILES, 0.01)
    said.standstill.after(progress(**changes))
    assert said.last().startswith("waiting: no batch has ended for 0 s; ")
    said.standstill.stop()
    assert len(said.lines) == 1


def test_nothing_is_said_where_the_input_has_ended() -> None:
    standstill = Standstill(FILES, pytest.fail, LONG)
    standstill.after(progress())
    waits = standstill._timer
    standstill.after(progress(finished=True))
    waits.join(10)
    assert standstill._timer is waits and not waits.is_alive()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (FILES.source, FILES.source.told),
        (read_job(ROOT / "conf" / "jobs" / "flights_kafka.yaml").source, "the topic flights"),
        (DeltaSource("/tables/matches", None, None), "the table /tables/matches"),
    ],
)
def test_a_run_says_that_it_waits_for_events_and_later_that_none_has_come(source: Any, told: str) -> None:
    said = Said(replace(FILES, source=source), 0.01)
    said.standstill.begin(FILES)
    assert said.last() in said.lines and said.lines[0] == f"started, waiting for events in {told}"
    assert said.last() == f"waiting: nothing has come for 0 s from {told}."
    said.standstill.stop()


def test_ticks_of_a_clock_end_no_silence() -> None:
    said = Said(WITH_CLOCK, 0.01)
    said.standstill.begin(FILES)
    said.standstill.after(progress(records=0))
    silence = (
        f"waiting: nothing has come for 0 s from {FILES.source.told}: the clock alone moves the frontier."
    )
    assert [said.last(), said.last()][-1] == silence
    said.standstill.after(progress())
    assert said.last() == silence and len(said.lines) == 3
    said.standstill.after(progress(records=0))
    said.standstill.stop()
    assert len(said.lines) == 3


def test_where_batches_seldom_come_it_waits_for_longer() -> None:
    assert Standstill(FILES, pytest.fail).least_seconds == 30
    assert Standstill(replace(FILES, trigger_us=60_000_000), pytest.fail).least_seconds == 120
    standstill = Standstill(FILES, pytest.fail)
    standstill.after(progress())
    standstill._first -= 300  # five minutes earlier
    standstill.after(progress())
    assert 3000 <= standstill._timer.interval < 3001
    standstill.stop()


def test_a_further_batch_and_the_end_of_the_run_keep_it_silent() -> None:
    told = list[str]()
    standstill = Standstill(FILES, told.append, LONG)
    standstill.after(progress(pending=1))
    first = standstill._timer
    standstill.after(progress(pending=1))
    second = standstill._timer
    standstill.stop()
    first.join(10)
    second.join(10)
    assert not first.is_alive()
    assert not second.is_alive()
    assert told == []


def test_an_event_of_times_to_come_is_told_once() -> None:
    told = list[str]()
    standstill = Standstill(FILES, told.append, LONG)
    past, future = 60_000_000, 4_102_444_800_000_000  # 1970 and 2100
    for newest in (past, None, future, future):
        standstill.after(progress(newest_us=newest))
    standstill.stop()
    assert [line.partition(",")[0] for line in told] == [
        "warning: The newest event is of 2100-01-01 00:00:00Z"
    ]
    assert "Once the frontier follows it, events of now are late" in told[0]


def test_a_job_that_is_far_behind_says_so_when_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = list[str](), 1_700_000_000.0
    standstill = Standstill(FILES, told.append, LONG)
    monkeypatch.setattr("spark_pace.cli.run.time.time", lambda: now)
    lags = [600, 610, 620, 630, 640, 560, 480, 400, 320, 240, 160, 80, 2, 2]
    for lag in lags:
        now += 20
        standstill.after(progress(newest_us=int((now - lag) * 1e6), seconds=20.0, batch_seconds=19.0))
    standstill.stop()
    assert told == [
        "warning: The job falls behind: the newest event is 0:10:10 behind the clock, 0:00:10 more than "
        "0:00:20 before. It is too slow for its input.",
        "warning: The job is behind: the newest event is 0:09:20 behind the clock. "
        "At this speed it has caught up in about 0:09:20.",
        "caught up: the newest event is 0:00:02 behind the clock.",
    ]

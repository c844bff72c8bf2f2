"""A run says once that none comes, that its stream stands, that it is behind; and where it reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from spark_pace.cli.run import Progress
from spark_pace.job_file import Clock, DeltaSource, JobSpec, read_job
from tests.support.commands import ROOT
from tests.unit.cli.test_run_and_status import progress

BEGAN = datetime(2023, 11, 14, tzinfo=timezone.utc)
FILES = replace(read_job(ROOT / "conf" / "jobs" / "flights.yaml"), trigger_us=2_000_000)
WITH_CLOCK = replace(FILES, events=replace(FILES.events, clock=Clock(5_000_000, 30_000_000)))


class Run:
    """A run whose time stands until it is said to pass."""

    def __init__(self, spec: JobSpec = FILES, *, is_ready: bool = True) -> None:
        self.lines, self.batches, self.seconds = list[str](), 0, 0.0
        self._progress = Progress(spec, self.lines.append, lambda: BEGAN + timedelta(seconds=self.seconds))
        if is_ready:
            self._progress.ready(spec)
            assert self.told() == [f"started: reads {spec.source.told}"]

    def told(self) -> list[str]:
        """What was said since it was asked last."""
        said, self.lines[:] = [*self.lines], []
        return said

    def pass_by(self, seconds: float, *, under_way: bool = False) -> list[str]:
        """Let time pass, in which the run looks twice whether a batch is under way."""
        for _ in range(2):
            self.seconds += seconds / 2
            self._progress.works(under_way)
        return self.told()

    def batch(self, **changes: Any) -> list[str]:
        self._progress.batch(progress(batch_id=self.batches, **changes))
        self.batches += 1
        return self.told()


def test_it_says_what_waits_where_the_frontier_stands_and_what_would_move_it() -> None:
    run = Run()
    standing = {"pending": 399, "open": 2, "frontier_us": 60_000_000}
    assert run.batch(**standing, slowest_source="north") == []
    assert run.pass_by(29) == []
    assert run.pass_by(4) == [
        "waiting: The frontier stands at 1970-01-01 00:01:00Z since 2023-11-14 00:00:00Z, with 399 events "
        "waiting for it. Only a later event of the source north moves it, or a clock in events.",
        "waiting: Nothing has come from any source since 2023-11-14 00:00:00Z, for 0:00:31.",
    ]
    assert run.pass_by(3600) == []


def test_windows_alone_that_are_open_are_told_too() -> None:
    run = Run()
    run.batch(pending=0, open=3)
    (told,) = run.pass_by(62)
    assert told.endswith(", and 3 selections may wait for the frontier. Only a later event moves it, or a "
                         "clock in events.")  # fmt: skip


def test_nothing_is_said_where_the_input_has_ended_or_of_a_batch_that_takes_long() -> None:
    run = Run()
    assert run.pass_by(3600, under_way=True) == []  # the first one is prepared
    run.batch()
    assert run.pass_by(3600, under_way=True) == []
    run.batch(finished=True)
    assert run.pass_by(3600) == []


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (FILES.source, FILES.source.told),
        (read_job(ROOT / "conf" / "jobs" / "flights_kafka.yaml").source, "the topic flights"),
        (DeltaSource("/tables/matches", None, None), "the table /tables/matches"),
    ],
)
def test_a_run_says_where_it_reads_and_later_that_nothing_has_come(source: Any, told: str) -> None:
    spec = replace(FILES, source=source)
    run = Run(spec, is_ready=False)
    assert run.pass_by(3600) == []  # until it is ready
    run._progress.ready(spec)
    assert run.told() == [f"started: reads {told}"]
    assert run.pass_by(62) == [
        "waiting: Nothing has come yet: the job runs for 0:00:31, and has done no batch."
    ]


def test_nothing_is_said_of_records_that_came_where_their_batch_is_interrupted() -> None:
    run = Run()
    run.batch(pending=0, open=0)
    assert run.pass_by(300, under_way=True) == []
    run._progress.works(False)  # by a signal, a failure, or other rules, which take some seconds
    assert run.told() == run.pass_by(20) == []
    assert len(run.pass_by(40)) == 1


def test_ticks_of_a_clock_end_no_silence() -> None:
    run = Run(WITH_CLOCK)
    run.batch(records=0, pending=0)
    assert run.pass_by(40) == [
        "waiting: Nothing has come from any source yet: the clock alone moves the frontier."
    ]
    assert run.batch(records=0, pending=0) == run.pass_by(40) == []
    run.batch(pending=0)
    (told,) = run.pass_by(40)
    assert told.endswith("for 0:00:40: the clock alone moves the frontier.")
    assert run.batch(records=0, pending=0) == run.pass_by(40) == []


def test_where_batches_seldom_come_it_waits_for_longer() -> None:
    seldom = Run(replace(FILES, trigger_us=60_000_000))
    seldom.batch(pending=0, open=0)
    assert seldom.pass_by(120) == [] and len(seldom.pass_by(2)) == 1
    run = Run()
    for _ in range(2):
        run.batch(pending=0, open=0)
        run.pass_by(300, under_way=True)
    assert run.pass_by(2700) == [] and len(run.pass_by(2)) == 1


def test_an_event_of_times_to_come_is_told_once() -> None:
    run, past, future = Run(), 60_000_000, 4_102_444_800_000_000  # 1970 and 2100
    told = [run.batch(max_time_us=newest) for newest in (past, None, future, future)]
    assert [len(lines) for lines in told] == [0, 0, 1, 0]
    assert told[2][0].startswith("warning: The newest event is of 2100-01-01 00:00:00Z, ")
    assert "Once the frontier follows it, events of now are late" in told[2][0]


def test_a_job_that_is_far_behind_says_so_when_that_changes() -> None:
    run, told = Run(), list[str]()
    for lag in [600, 610, 620, 630, 640, 560, 480, 400, 320, 240, 160, 80, 2, 2]:
        told += run.pass_by(20, under_way=True)
        newest = int((BEGAN.timestamp() + run.seconds - lag) * 1e6)
        told += run.batch(max_time_us=newest, seconds=20.0, batch_seconds=19.0)
    assert told == [
        "warning: The job falls behind: the newest event is 0:10:10 behind the clock, 0:00:10 more than "
        "0:00:20 before. It is too slow for its input.",
        "warning: The job is behind: the newest event is 0:09:20 behind the clock. "
        "At this speed it has caught up in about 0:09:20.",
        "caught up: the newest event is 0:00:02 behind the clock.",
    ]

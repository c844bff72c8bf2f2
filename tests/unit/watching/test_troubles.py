"""What is told of a job that stands, of one to which nothing comes, and of one that is too slow."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import Layout, write_layout
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from spark_pace.watching.facts import facts
from spark_pace.watching.history import Seen
from spark_pace.watching.subject import Subject
from tests.support.watched import BEGAN, watched_job
from tests.unit.watching.test_report import SOON, told_of


def test_what_stands_still_is_told_with_the_reason(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    standing = {"frontier_us": int(BEGAN.timestamp() * 1e6), "slowest_source": "north", "pending": 3}
    for _ in range(3):
        watched.batch({}, **standing, late=0)
    with checkpoint_lock(Checkpoint(watched.spec.checkpoint_folder)):
        told = told_of(watched)
    assert told["state"]["word"] == "runs"
    assert told["troubles"] == [
        "The frontier stands at 2026-11-01 00:00:00Z since 2026-11-01 00:00:00Z, with 3 events waiting for "
        "it. Only a later event of the source north moves it, or a clock in events.",
        "Nothing has come from any source since 2026-11-01 00:00:04Z, for 0:00:56.",
    ]


def test_a_batch_that_takes_long_and_one_that_was_interrupted_are_told(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    watched.batch({}, late=0, pending=0, max_time_us=None)
    checkpoint = Checkpoint(watched.spec.checkpoint_folder)
    write_layout(checkpoint, Layout(1, 1, (0,), "id", {}))
    checkpoint.offsets.mkdir()
    checkpoint.offsets_of(0).touch()
    os.utime(checkpoint.offsets_of(0), (0, 0))  # by an earlier run
    later = datetime.now(timezone.utc) + timedelta(seconds=90)
    with checkpoint_lock(checkpoint):
        told = facts(Subject.of(watched.spec), Seen(watched.spec.sink_path), later)
    assert re.fullmatch(r"Batch 0 is under way for 0:01:[23]\d\.", told["troubles"][0])
    assert told["state"]["told"].endswith("; batch 0 is under way")
    assert "newest event" not in dict(told["figures"])
    assert told_of(watched)["troubles"][1] == "Batch 0 was interrupted: the next start does it again."


def test_a_silence_that_a_clock_hides_is_told_once_it_is_unusual(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1, keys={"events": {"clock": {"every": "2 s", "slack": "5 s"}}})
    silent = {"records": 0, "events": 0, "late": 0, "bad_records": 0, "pending": 0}

    def told(seconds: int) -> list[str]:
        now = BEGAN + timedelta(seconds=seconds)
        with checkpoint_lock(Checkpoint(watched.spec.checkpoint_folder)):
            return facts(Subject.of(watched.spec), Seen(watched.spec.sink_path), now)["troubles"]

    watched.batch({}, **silent)
    assert told(30) == []
    assert told(31) == ["Nothing has come from any source yet: the clock alone moves the frontier."]
    watched.batch({}, late=0, bad_records=0, pending=0)
    assert told(32) == []
    for _ in range(4):
        watched.batch({}, **silent)
    assert told(32) == []
    assert told(33) == [
        "Nothing has come from any source since 2026-11-01 00:00:02Z, for 0:00:31: the clock alone moves "
        "the frontier."
    ]
    watched.batch({}, late=0, bad_records=0, pending=0)
    watched.batch({}, **silent)
    assert told(112) == []  # records have come every ten seconds
    assert len(told(113)) == 1


def test_a_silence_is_told_without_a_clock_too_unless_a_batch_is_under_way(tmp_path: Path) -> None:
    watched, quiet = watched_job(tmp_path, 1), {"late": 0, "bad_records": 0, "pending": 0}
    checkpoint = Checkpoint(watched.spec.checkpoint_folder)

    def told(seconds: int, trigger_us: int | str = 2_000_000) -> list[str]:
        spec = replace(watched.spec, trigger_us=trigger_us)  # type: ignore[arg-type]
        now = datetime.now(timezone.utc) if watched.batches == 0 else BEGAN
        with checkpoint_lock(checkpoint):
            later = now + timedelta(seconds=seconds)
            return facts(Subject.of(spec), Seen(watched.spec.sink_path), later)["troubles"]

    assert told(25) == [] == told(90, trigger_us=60_000_000) == told(3600, trigger_us="available_now")
    assert re.fullmatch(
        "Nothing has come yet: the job runs for 0:00:[0-9]+, and has done no batch.", told(40)[0]
    )
    watched.batch({}, **quiet)
    assert told(30) == [] == told(120, trigger_us=60_000_000)
    silence = "Nothing has come from any source since 2026-11-01 00:00:00Z, for 0:00:31"
    mover = "70 selections may wait for the frontier. Only a later event moves it, or a clock in events."
    assert told(31) == [f"{silence}, and {mover}"]
    watched.batch({}, **quiet, open=0)
    assert told(33) == [f"{silence.replace('00:00:00Z', '00:00:02Z')}."]
    assert facts(Subject(watched.spec.sink_path), Seen(watched.spec.sink_path), SOON)["troubles"] == []
    write_layout(checkpoint, Layout(1, 1, (0,), "id", {}))
    checkpoint.offsets.mkdir()
    checkpoint.offsets_of(0).touch()
    os.utime(checkpoint.offsets_of(0), (BEGAN.timestamp(), BEGAN.timestamp()))
    assert told(33) == []


def test_a_job_that_falls_behind_says_so_while_it_runs(tmp_path: Path) -> None:
    watched, at = watched_job(tmp_path, 1), int(BEGAN.timestamp() * 1e6)
    for number in range(20):
        times = {"max_time_us": at - 600_000_000 + number * 1_000_000, "frontier_us": at - 700_000_000}
        watched.batch({}, **times, late=0, bad_records=0, pending=0, batch_seconds=1.9)
    with checkpoint_lock(Checkpoint(watched.spec.checkpoint_folder)):
        assert told_of(watched)["troubles"] == [
            "The job falls behind: the newest event is 0:10:19 behind the clock, 0:00:19 more than 0:00:38 "
            "before. It is too slow for its input."
        ]
        later = facts(Subject.of(watched.spec), Seen(watched.spec.sink_path), SOON + timedelta(minutes=1))
    assert "falls behind" not in " ".join(later["troubles"] + told_of(watched)["troubles"])


def test_a_batch_without_an_event_says_nothing_of_the_lag(tmp_path: Path) -> None:
    """Else the job would have caught up at once, however far it is behind."""
    watched, at = watched_job(tmp_path, 1), int(BEGAN.timestamp() * 1e6)
    watched.batch({}, max_time_us=None, frontier_us=None, late=0, bad_records=0, pending=0)
    for number in range(1, 16):
        times = {"max_time_us": at - 3_600_000_000 + number * 2_000_000, "frontier_us": at - 3_700_000_000}
        watched.batch({}, **times, late=0, bad_records=0, pending=0)
    with checkpoint_lock(Checkpoint(watched.spec.checkpoint_folder)):
        assert told_of(watched)["troubles"] == []

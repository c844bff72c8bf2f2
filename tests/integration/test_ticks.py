"""A clock as part of the input: it ends windows where nothing comes, and every run reads the same ticks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from examples.kafka.broker import Broker
from spark_pace.core import local_run
from spark_pace.core.order import Tick
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import SparkPaceError
from spark_pace.io.event_files import read_events, table_events
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import Clock, JobSpec
from spark_pace.spark.sources.files import read_by_batches
from tests.spark.jobs import job, matches, random_events, stop_at, table, write_files
from tests.support.kafka_jobs import as_json, columns_of, dealt, kafka_job

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

YEAR_2025_US = 1_735_689_600_000_000  # all events are older, all ticks are later
CLOCK = Clock(every_us=500_000, slack_us=100_000)


def run_until(spec: JobSpec, enough: Callable[[BatchReport], bool]) -> list[BatchReport]:
    """Run a job until a batch is enough, then stop it by a signal."""
    batches: list[BatchReport] = []

    def note(batch: BatchReport) -> None:
        batches.append(batch)
        if enough(batch):
            os.kill(os.getpid(), signal.SIGTERM)

    run_job(spec, on_progress=note)
    return batches


def has_ticked(batch: BatchReport) -> bool:
    return (batch.frontier_us or 0) > YEAR_2025_US


def in_core(spec: JobSpec, read: list[list[pa.Table | Tick]]) -> local_run.LocalResult:
    return local_run.run(build_plan(spec.rules, order=spec.events.order), read, finish=False)


def late_positions(late: pa.Table) -> set[tuple[Any, ...]]:
    return set(zip(late["source"].to_pylist(), late["offset"].to_pylist(), strict=True))


def as_read(spec: JobSpec) -> list[pa.Table | Tick]:
    """The files and ticks that the batches of a job have read, in order."""
    return [part if isinstance(part, Tick) else events_of(spec, part) for part in parts_of(spec)]


def parts_of(spec: JobSpec) -> tuple[str | Tick, ...]:
    return read_by_batches(Path(spec.checkpoint_path)).parts


def events_of(spec: JobSpec, name: str) -> pa.Table:
    return read_events(str(Path(spec.files.path) / name), "json", spec.events.schema, name).events


@pytest.mark.long
def test_a_tick_ends_windows_and_what_comes_behind_it_is_late(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False)
    spec = replace(spec, trigger_us=100_000, events=replace(spec.events, clock=CLOCK))
    events = random_events(31)
    write_files(tmp_path, events[:150], 3)
    run_until(spec, has_ticked)
    assert table(spec, "late").num_rows == 0
    write_files(tmp_path, events[150:], 2, first=3)
    run_until(spec, lambda batch: batch.late > 0)
    run_job(job(tmp_path, finish=False))  # ends the batch that the stop may have cut off
    expected = in_core(spec, [as_read(spec)])
    assert expected.late.num_rows == table(spec, "late").num_rows > 0
    assert late_positions(table(spec, "late")) == late_positions(expected.late)
    assert matches(spec) == expected.matches.to_pylist()
    without = in_core(spec, [as_read(spec)[:3]])
    assert without.stats["open"] > 0 and len(without.matches) < len(expected.matches)


def test_a_tick_comes_behind_all_records_that_were_there(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    spec = kafka_job(
        tmp_path, broker.servers, topic, finish=False, trigger="100 ms", max_offsets_per_trigger=60
    )
    spec = replace(spec, events=replace(spec.events, clock=CLOCK))
    events = random_events(32)
    send(topic, *dealt(events[:150], as_json))
    batches = run_until(spec, has_ticked)
    assert sum(batch.records for batch in batches) == 150
    assert table(spec, "late").num_rows == 0
    send(topic, *dealt(events[150:], as_json))
    run_until(spec, lambda batch: batch.late > 0)
    late = table(spec, "late").num_rows
    first = [of_partition(spec, topic, events[:150], number) for number in (0, 1)]
    expected = in_core(spec, [first, [Tick(YEAR_2025_US)]])
    assert 0 < late <= 50
    assert matches(spec) == expected.matches.to_pylist()


def of_partition(spec: JobSpec, topic: str, events: list[dict[str, Any]], number: int) -> pa.Table:
    part = columns_of(events[number::2])
    return table_events(part, spec.events.schema, f"{topic}/{number}").events


def test_a_batch_that_runs_again_reads_the_same_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job(tmp_path, finish=False)
    ticking = replace(spec, trigger_us=100_000, events=replace(spec.events, clock=CLOCK))
    write_files(tmp_path, random_events(33), 2)
    with monkeypatch.context() as patched, pytest.raises(SparkPaceError, match="the disk is full"):
        stop_at(patched, "matches", batch_id=1)
        run_job(ticking)
    run_job(spec)
    read = as_read(spec)
    assert [isinstance(part, Tick) for part in read[:3]] == [False, False, True]
    assert matches(spec) == in_core(spec, [read]).matches.to_pylist()

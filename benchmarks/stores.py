"""A batch with source, checkpoint and tables in an object store, beside one with all of it on the local disk.

The store is a server on this machine, which counts the requests and answers at once; a real one takes some
tens of milliseconds for each answer. A job reads a file of 100,000 events a batch; when all are read, a clock
lets batches without events run. The matches are compared with the core's before any figure is given.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import obstore

from benchmarks.events import write_events
from benchmarks.jobs import DATA, OUT, job, require_equal
from benchmarks.processes import alone as alone_in
from benchmarks.rows import Row, Sizes
from examples.cluster.store_server import StoreServer
from spark_pace.io.metrics import BatchReport
from spark_pace.io.replay import replay_files
from spark_pace.job import run_job
from spark_pace.job_file import Clock, JobSpec, Parallelism

EVENTS, FILES, EMPTY, WARM = 100_000, 8, 10, 3
DISK, STORE = "on a disk", "in a store"
# it ticks in a time before all events, so it decides nothing
CLOCK = Clock(every_us=1_000_000, slack_us=20 * 365 * 86_400 * 1_000_000)


def measure(sizes: Sizes) -> Iterator[Row]:
    """Seconds of both kinds of batches in both places, and their requests in the store."""
    of = "the core's matches"
    for place in (DISK, STORE):
        for kind, (seconds, requests) in alone_in("stores", place).items():
            yield Row("stores", f"{place}; {kind}", seconds, "s", None, None, of)
            if place == STORE:
                yield Row("stores", f"{place}; {kind}", requests, "requests", None, None, of)


def alone(place: str) -> dict[str, tuple[float, float]]:
    """(the median of seconds, that of requests) of each kind of batch in a place."""
    files = write_events(DATA / "stores", EVENTS * FILES, FILES, "number")
    spec = job("batches", files)
    source = replace(spec.files, max_files_per_trigger=1)
    spec = replace(spec, source=source, parallelism=Parallelism(2), trigger_us=1_000_000, finish=False)
    shutil.rmtree(OUT / "stores", ignore_errors=True)
    (OUT / "stores").mkdir(parents=True)
    if place == DISK:
        out = str(OUT / "stores")
        return _measured(replace(spec, sink_path=out, checkpoint_path=f"{out}/_checkpoint"), files, None)
    with StoreServer(OUT / "stores") as server:
        os.environ.update(server.environment)
        bucket = server.bucket("bench")
        for path in files.glob("part-*.json"):
            obstore.put(bucket, f"in/{path.name}", path.read_bytes())
        there = replace(spec, source=replace(source, path="s3a://bench/in"), sink_path="s3a://bench/out")
        return _measured(replace(there, checkpoint_path="s3a://bench/checkpoint"), files, server)


def _measured(spec: JobSpec, files: Path, server: StoreServer | None) -> dict[str, tuple[float, float]]:
    batches: list[tuple[float, int]] = []

    def note(report: BatchReport) -> None:
        batches.append((report.batch_seconds, len(server.requests()) if server else 0))
        if len(batches) == FILES + EMPTY:
            os.kill(os.getpid(), signal.SIGINT)

    run_job(replace(spec, events=replace(spec.events, clock=CLOCK)), on_progress=note)
    run_job(replace(spec, trigger_us="available_now", finish=True))
    require_equal(spec, replay_files(spec.rules, files).result.matches)
    kinds = {"no events": range(FILES + WARM, FILES + EMPTY), "100,000 events": range(WARM, FILES)}
    return {
        kind: (
            statistics.median(batches[number][0] for number in numbers),
            statistics.median(batches[number][1] - batches[number - 1][1] for number in numbers),
        )
        for kind, numbers in kinds.items()
    }

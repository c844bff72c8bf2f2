"""The fixed cost of a batch: a job with a trigger, over forty batches of 1,000 events and forty without any.

A batch without events has one record, of a type that no rule wants. Each batch is one file; all files are
there at the start, and the trigger is shorter than a batch, so that batches follow each other at once. The
matches are compared with the core's before any figure is given. Given are medians in milliseconds, of the
batches after the first few of each kind: what Spark says of its own parts, its stages, and the parts of the
merger, which are timed by wrapping its calls.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import psutil
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.events import write_events
from benchmarks.jobs import DATA, job, require_equal
from benchmarks.rows import Row, Sizes
from spark_pace import job as jobs
from spark_pace.core import merger as core_merger
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec
from spark_pace.spark.checkpoint import batch_begin
from spark_pace.spark.queries import start
from spark_pace.spark.stages import merger

EVENTS = 1_000
NAME = "batches"

Parts = dict[int, dict[str, float]]  # of each batch, its parts in milliseconds


def write_files(count: int) -> Path:
    """A file for each batch: first those of 1,000 events, then those of one that no rule wants."""
    folder = write_events(DATA / f"{NAME}-{count}", EVENTS * count, count, "number")
    last_ms = 1_700_000_000_000 + EVENTS * count
    for number in range(count):
        event = {"ts": last_ms + number, "id": 0, "etype": "unwanted", "value": 0.0}
        (folder / f"part-{count + number:03d}.json").write_text(json.dumps(event) + "\n", encoding="ascii")
    return folder


def measure(sizes: Sizes) -> Iterator[Row]:
    """The medians of each part of a batch, for batches with events and without."""
    count = sizes.batches
    plain = job(NAME, write_files(count))
    shutil.rmtree(plain.sink_path, ignore_errors=True)
    source = replace(plain.files, max_files_per_trigger=1)
    spec = replace(plain, source=source, trigger_us=1000, finish=False)
    parts: Parts = defaultdict(dict)
    with timed(parts):
        run(spec, parts, 2 * count - 1)
    # the end, which decides about what is open; so the result can be compared with the core's
    jobs.run_job(replace(spec, trigger_us="available_now", finish=True))
    require_equal(spec)
    warm = count // 4  # batches of each kind that are left out
    kinds = {"1,000 events": range(warm, count), "no events": range(count + warm, 2 * count)}
    for kind, numbers in kinds.items():
        for name, value in medians([parts[number] for number in numbers]).items():
            unit = "" if name.startswith("count") else "ms"
            yield Row("batches", f"{name}; {kind}", value, unit, None, None, "the core's matches")


def medians(batches: list[dict[str, float]]) -> dict[str, float]:
    """The median of each part, over the batches that have it; of the processors, which tick, the mean."""
    found: dict[str, float] = {}
    for name in sorted({name for batch in batches for name in batch}):
        values = [batch[name] for batch in batches if name in batch]
        found[name] = round(
            (statistics.mean if name.startswith("processor") else statistics.median)(values), 1
        )
    return found


def run(spec: JobSpec, parts: Parts, last: int) -> None:
    """Run the job until batch `last` is done, then stop it as ctrl-C would."""
    queries: list[StreamingQuery] = []
    written = threading.Event()

    def started(*arguments: Any) -> StreamingQuery:
        queries.append(start(*arguments))
        return queries[-1]

    def note(report: BatchReport) -> None:
        used[report.batch_id] = processor_ms()
        if report.batch_id == last:
            written.set()

    def stop() -> None:
        written.wait()
        try:
            while not _is_done(queries[0], last):
                threading.Event().wait(0.2)
            add_progress(queries[0], parts)
            add_stages(parts)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    watch = threading.Thread(target=stop, daemon=True)
    watch.start()
    used: dict[int, dict[str, float]] = {}
    with patch("spark_pace.spark.queries.start", started):
        jobs.run_job(spec, on_progress=note)
    watch.join()
    for number, whole in used.items():
        if number - 1 in used:
            for kind, taken in whole.items():
                parts[number][f"processor: {kind}"] = taken - used[number - 1][kind]


def processor_ms() -> dict[str, float]:
    """What this process, the JVM and the workers have taken of the processors."""
    process = psutil.Process()
    taken = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            kind = "driver" if one == process else "jvm" if one.name() == "java" else "workers"
            times = one.cpu_times()
            taken[kind] += 1000 * (times.user + times.system)
    return taken


def _is_done(query: StreamingQuery, batch: int) -> bool:
    progress = query.lastProgress
    return progress is not None and int(progress["batchId"]) >= batch


def add_progress(query: StreamingQuery, parts: Parts) -> None:
    """Add what Spark says of each batch."""
    for progress in query.recentProgress:
        for name, value in progress["durationMs"].items():
            if progress["numInputRows"]:
                parts[int(progress["batchId"])][f"batch: {name}"] = float(value)


def add_stages(parts: Parts) -> None:
    """Add each batch's jobs, stages and tasks, and how long each stage took."""
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    assert session is not None
    store = session.sparkContext._jsc.sc().statusStore()
    done = store.jobsList(None)
    for index in range(done.size()):
        found = done.apply(index)
        text = found.description()
        label = text.get() if text.isDefined() else ""
        if "batch = " not in label:
            continue
        batch = parts[int(label.rpartition("batch = ")[2].split()[0])]
        batch["count: jobs"] = batch.get("count: jobs", 0) + 1
        stages = sorted(found.stageIds().apply(place) for place in range(found.stageIds().size()))
        for number, stage_id in enumerate(stages):
            stage = store.lastStageAttempt(stage_id)
            if not stage.completionTime().isDefined():
                continue  # it was left out, for its result was there
            took = stage.completionTime().get().getTime() - stage.submissionTime().get().getTime()
            batch[f"stage {number}: wall"] = float(took)
            batch[f"stage {number}: tasks"] = float(stage.numTasks())
            batch["count: tasks"] = batch.get("count: tasks", 0) + stage.numTasks()


@contextmanager
def timed(parts: Parts) -> Iterator[None]:
    """Time the calls of the merger."""
    batch = [0]

    def noted(name: Callable[..., str], function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            began = perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                label = f"merger: {name(*arguments)}"
                parts[batch[0]][label] = parts[batch[0]].get(label, 0.0) + 1000 * (perf_counter() - began)

        return call

    def begun(host: merger.MergerHost, rows: DataFrame, batch_id: int) -> None:
        batch[0] = batch_id
        noted(lambda *_: "all", call_host)(host, rows, batch_id)

    call_host = merger.MergerHost.__call__
    with (
        patch.object(merger.MergerHost, "__call__", begun),
        patch.object(DataFrame, "toArrow", noted(lambda *_: "rows from Spark", DataFrame.toArrow)),
        patch.object(merger, "merge", noted(lambda *_: "merge", core_merger.merge)),
        patch.object(batch_begin, "write_begin", noted(lambda *_: "sequence file", batch_begin.write_begin)),
        patch.object(
            DeltaTables, "append", noted(lambda _, table, *__: f"append {table}", DeltaTables.append)
        ),
    ):
        yield

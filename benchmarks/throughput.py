"""The whole job (files to Delta) beside Spark's JSON reader into nothing: the same files, the same session.

Timed on both sides: from the start of the query until it has ended, with the query's planning. Both are run
once to warm up, then in turns; the ratio is the median of the turns' ratios. The job's matches are compared
with the core's before any figure is printed.
"""

from __future__ import annotations

import shutil
import statistics
import uuid
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from pyspark.sql import SparkSession

from benchmarks.events import write_events
from benchmarks.jobs import ROOT, job, require_equal, run_anew
from spark_pace.job_file import JobSpec
from spark_pace.spark.session import build_session

EVENTS = 5_000_000
FILES = 20
ROUNDS = 5
TARGET = 1.0


def measure(time: Literal["text", "number"]) -> dict[str, Any]:
    """Run both; the figures. `time` is how the events' time is written."""
    name = "throughput" if time == "text" else "throughput_of_numbers"
    spec = job(name, write_events(ROOT / "data" / "bench" / name, EVENTS, FILES, time))
    shutil.rmtree(spec.sink_path, ignore_errors=True)
    spark = build_session("bench")
    try:
        matches = require_equal(run_anew(spec)[0])
        floor(spark, spec)
        rounds = [
            (seconds(lambda: run_anew(spec)), seconds(lambda: floor(spark, spec))) for _ in range(ROUNDS)
        ]
    finally:
        spark.stop()
    ours, theirs = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(floor_seconds / our_seconds for our_seconds, floor_seconds in rounds)
    return {
        "name": name,
        "what": (
            f"spark_pace, JSON files (event time as {time}) to Delta, "
            "over Spark's readStream.json to nothing; events a second of each"
        ),
        "events": EVENTS,
        "matches": matches,
        "events_per_second": round(EVENTS / ours),
        "floor_events_per_second": round(EVENTS / theirs),
        "ratio": round(ratio, 3),
        "target": f">= {TARGET}" if time == "text" else "none",
        "reached": ratio >= TARGET or time == "number",
        "rounds_seconds": rounds,
    }


def floor(spark: SparkSession, spec: JobSpec) -> None:
    """Spark reads and parses the same files, and throws the rows away."""
    checkpoint = Path(spec.sink_path) / "floor" / uuid.uuid4().hex
    rows = spark.readStream.schema(
        ", ".join(f"{field.name} {field.type}" for field in spec.events.schema.fields)
    ).json(spec.files.path)
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def seconds(action: Callable[[], object]) -> float:
    """Wall time."""
    began = perf_counter()
    action()
    return perf_counter() - began

"""The whole job (files to Delta) beside Spark's own JSON reader into nothing, on the same files in the same session.

Timed on both sides: from the start of the query until it has ended, with the query's planning. Both are run once to warm up, then in
turns; the medians are compared. The job's matches are compared with the core's before any figure is printed.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.events import write_events
from benchmarks.jobs import ROOT, job, require_equal, run_anew
from spark_pace.job_file import JobSpec
from spark_pace.spark.session import build_session

EVENTS = 5_000_000
FILES = 20
ROUNDS = 3
TARGET = 1.0


def measure() -> dict[str, Any]:
    """Run both; the figures."""
    events = write_events(ROOT / "data" / "bench" / "throughput", EVENTS, FILES)
    spec = job("throughput", events)
    spark = build_session("bench")
    try:
        run_anew(spec)
        floor(spark, spec)
        matches = require_equal(spec)
        rounds = [(seconds(lambda: run_anew(spec)), seconds(lambda: floor(spark, spec))) for _ in range(ROUNDS)]
    finally:
        spark.stop()
    ours, theirs = (statistics.median(times) for times in zip(*rounds, strict=True))
    return {
        "name": "throughput",
        "what": "spark_pace, JSON files to Delta, over Spark's readStream.json to nothing; events a second of each, and their ratio",
        "events": EVENTS,
        "matches": matches,
        "events_per_second": round(EVENTS / ours),
        "floor_events_per_second": round(EVENTS / theirs),
        "ratio": round(theirs / ours, 3),
        "target": f">= {TARGET}",
        "reached": theirs / ours >= TARGET,
        "rounds_seconds": rounds,
    }


def floor(spark: SparkSession, spec: JobSpec) -> None:
    """Spark reads and parses the same files, and throws the rows away."""
    checkpoint = Path(spec.sink_path).parent / "floor"
    shutil.rmtree(checkpoint, ignore_errors=True)
    rows = spark.readStream.schema(", ".join(f"{field.name} {field.type}" for field in spec.events.schema.fields)).json(spec.source.path)
    query = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def seconds(action: Callable[[], object]) -> float:
    """Wall time."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began

"""A job for a measurement, Spark's own readers, and the check of a job's result."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.rows import require
from spark_pace import read_table
from spark_pace.core.plan.rule import Rule
from spark_pace.io.replay import replay_files
from spark_pace.job import run_job
from spark_pace.job_file import Events, FilesSource, Format, JobSpec
from spark_pace.rules import load_rules
from spark_pace.spark.session import build_session
from spark_pace.spark.stages.rows import keep_freed
from spark_pace.spark.summary import Summary

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = ROOT / "out" / "bench"
DATA = ROOT / "data" / "bench"
ORDER = [("rule", "ascending"), ("out_seq", "ascending")]

RunJob = Callable[[JobSpec], tuple[JobSpec, Summary]]  # as `run_anew`


def job(name: str, events: Path, rules: Sequence[Rule] | None = None, format: Format = "json") -> JobSpec:
    """The job that runs `rules`, or ``benchmarks/NAME.yaml``, over `events` into ``out/bench/NAME``."""
    rules = rules or load_rules(HERE / f"{name}.yaml")
    out = OUT / name
    return JobSpec(
        name=name,
        source=FilesSource(format, str(events), None),
        events=Events(rules[0].schema, on_bad_record="fail", on_operator_error="fail"),
        rules=tuple(rules),
        sink_path=str(out),
        checkpoint_path=str(out / "_checkpoint"),
        trigger_us="available_now",
        finish=True,
        admission="off",
        operators=("benchmarks.operators",),
        spark={},
    )


def run_anew(spec: JobSpec) -> tuple[JobSpec, Summary]:
    """Run the job from the start, in the session that is there; returns it with the sink it has written to.

    Each run has a folder of its own: a session still writes to a checkpoint for a while after its query has
    ended.
    """
    out = Path(spec.sink_path) / uuid.uuid4().hex
    own = replace(spec, sink_path=str(out), checkpoint_path=str(out / "_checkpoint"))
    keep_freed()  # as `spark-pace run` does
    return own, run_job(own)


@contextmanager
def job_process() -> Iterator[RunJob]:
    """A process that runs jobs on files anew, in a session such as ``spark-pace run`` starts for them.

    Its JVM has no loop over events, so it compiles quickly, and its memory is kept small.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin) as pool:
        yield lambda spec: pool.submit(run_anew, spec).result()


def _begin() -> None:
    build_session("bench", quick=True)


def read_only(spark: SparkSession, spec: JobSpec) -> None:
    """The floor: Spark reads and parses the job's files, and throws the rows away."""
    checkpoint = Path(spec.sink_path) / "floor" / uuid.uuid4().hex
    schema = ", ".join(f"{field.name} {field.type}" for field in spec.events.schema.fields)
    rows = spark.readStream.schema(schema).format(spec.files.format).load(spec.files.path)
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def matches(spec: JobSpec) -> pa.Table:
    """What the job wrote, in output order."""
    return read_table(spec.sink_path, "matches").sort_by(ORDER)


def require_equal(spec: JobSpec, expected: pa.Table | None = None) -> int:
    """The number of matches a job wrote, if they are those of the core alone; ends the program if not.

    `expected`: what the core has found; by default it looks now.
    """
    if expected is None:
        expected = replay_files(spec.rules, Path(spec.files.path)).result.matches
    found = matches(spec).select(expected.column_names).cast(expected.schema)
    require(
        found.combine_chunks().equals(expected.combine_chunks()),
        f"{spec.name}: the job's {found.num_rows:,} matches differ from the core's "
        f"{expected.num_rows:,}; nothing was measured",
    )
    return int(found.num_rows)

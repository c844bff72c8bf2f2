"""A job for a measurement, and the check of its result."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from spark_pace import read_table
from spark_pace.io.replaying import replay_files
from spark_pace.job import run_job
from spark_pace.job_file import Events, FilesSource, JobSpec
from spark_pace.rules import load_rules
from spark_pace.spark.summary import Summary

HERE = Path(__file__).parent
ROOT = HERE.parent
ORDER = [("rule", "ascending"), ("out_seq", "ascending")]


def job(name: str, events: Path) -> JobSpec:
    """The job that runs ``benchmarks/NAME.yaml`` over `events` into ``out/bench/NAME``."""
    rules = load_rules(HERE / f"{name}.yaml")
    out = ROOT / "out" / "bench" / name
    return JobSpec(
        name=name,
        source=FilesSource("json", str(events), None),
        events=Events(rules[0].schema, on_bad_record="fail", on_operator_error="fail"),
        rules=rules,
        sink_path=str(out),
        checkpoint_path=str(out / "_checkpoint"),
        trigger_us="available_now",
        finish=True,
        admission=None,
        operators=("benchmarks.operators",),
        slots=None,
        buckets=None,
        lanes="auto",
        spark={},
    )


def run_anew(spec: JobSpec) -> tuple[JobSpec, Summary]:
    """Run the job from the start, in the session that is there; returns it with the sink it has written to.

    Each run has a folder of its own: a session still writes to a checkpoint for a while after its query has
    ended.
    """
    out = Path(spec.sink_path) / uuid.uuid4().hex
    own = replace(spec, sink_path=str(out), checkpoint_path=str(out / "_checkpoint"))
    return own, run_job(own)


def matches(spec: JobSpec) -> pa.Table:
    """What the job wrote, in output order."""
    return read_table(spec.sink_path, "matches").sort_by(ORDER)


def require_equal(spec: JobSpec) -> int:
    """The number of matches a job wrote, if they are those of the core alone; ends the program if not."""
    expected = replay_files(spec.rules, Path(spec.files.path)).result.matches
    found = matches(spec).select(expected.column_names).cast(expected.schema)
    if not found.combine_chunks().equals(expected.combine_chunks()):
        raise SystemExit(
            f"{spec.name}: the job's {found.num_rows:,} matches differ from the core's "
            f"{expected.num_rows:,}; nothing was measured"
        )
    return int(found.num_rows)

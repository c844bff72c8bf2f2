"""Compares what a job has found with what the core finds in the same records."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from spark_pace.core.intake.sift import without_late
from spark_pace.core.local_run import run
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.query import read_table
from spark_pace.job_file import JobSpec

ORDER = [("rule", "ascending"), ("out_seq", "ascending")]
MOST_TOLD = 10


def differing_matches(spec: JobSpec, events: pa.Table, tables: Path) -> tuple[int, int, list[str]]:
    """How many matches the core finds, how many the job has, and how these differ, in at most ten sentences.

    Args:
        spec: the job.
        events: all that was sent, with the columns of `spark_pace.io.event_files.EventsRead`.
        tables: the job's. What was late only the job knows: its table `late` says it.
    """
    on_time = without_late(events, read_table(tables, "late", ["source", "offset"]))
    plan = build_plan(spec.rules, order=spec.events.order, heartbeat=spec.events.heartbeat)
    expected = run(plan, [on_time]).matches
    found = read_table(tables, "matches").sort_by(ORDER)
    counts = expected.num_rows, found.num_rows
    if found.num_rows != expected.num_rows:
        return *counts, unequal("matches", found.num_rows, expected.num_rows)
    found = found.select(expected.column_names).cast(expected.schema)
    if found.combine_chunks().equals(expected.combine_chunks()):
        return *counts, []
    rows = zip(found.to_pylist(), expected.to_pylist(), strict=True)
    differing = [
        f"match {number}: got {ours}; expected {theirs}"
        for number, (ours, theirs) in enumerate(rows)
        if ours != theirs
    ]
    return *counts, differing[:MOST_TOLD]


def unequal(what: str, got: object, expected: object) -> list[str]:
    """A sentence, if they are not equal."""
    if got == expected:
        return []
    shown = [str(len(value)) if isinstance(value, list) else str(value) for value in (got, expected)]
    return [f"{what}: got {shown[0]}, expected {shown[1]}"]

"""Rules over rules in a job: after each batch just those matches are out that are in the core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_pace.core.local_run import LocalRun
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.event_files import read_events
from spark_pace.job import run_job
from tests.spark.jobs import RULES, job, matches, random_events, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LEVELS = (
    RULES
    + """
  - name: rising
    partition_by: [k]
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    where: b.x > a.x
    within: 30 s
    context: next, selected
    merge: detection
    emit: {second: b.x}
  - name: between
    partition_by: [k]
    span: {open: "kind = 'a'", close: "kind = 'b' and x > open.x", within: 20 s}
    where: count(*) > 2
    emit: {second: count(*)}
  - name: any
    from: [pairs, rising, between]
    pattern: {sequence: [{one: "second > 1"}, {other: "second > 1"}]}
    within: 10 s
    merge: detection
    emit: {second: one.second}
  - name: top
    from: [any, sums]
    span: {every: 15 s, size: 15 s}
    emit: {n: count(*), total: sum(total)}
"""
)
FILES, EVENTS = 4, 18


def test_a_job_has_after_each_batch_the_matches_that_the_core_has(tmp_path: Path) -> None:
    spec = job(tmp_path, rules=LEVELS, slots=2, finish=False)
    write_files(tmp_path, random_events(31, FILES * EVENTS), FILES)
    found: list[list[dict[str, Any]]] = []
    run_job(spec, on_progress=lambda _: found.append(matches(spec)))
    assert len(found) == FILES
    local = LocalRun(build_plan(spec.rules, order=spec.events.order))
    expected, waits = [], []
    for path, in_job in zip(sorted((tmp_path / "in").iterdir()), found, strict=True):
        step = local.step(read_events(str(path), spec.files.format, spec.events.schema, path.name).events)
        expected += step.matches.to_pylist()
        out = local.levels.out_before
        waits += [step.frontier_us - out[name] for name in ("pairs", "rising", "between", "any")]
        expected.sort(key=lambda row: (row["rule"], row["out_seq"]))
        assert in_job == expected
    assert {row["rule"] for row in expected} >= {"any", "top"}
    assert min(waits) == 0 < max(waits)

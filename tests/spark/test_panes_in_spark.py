"""Rules that carry panes, and share them, in the streaming query: the core's matches, stopped or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_pace.job import run_job
from tests.spark.jobs import in_core, job, matches, random_events, stopped_job, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

RULES = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: short
    partition_by: [k]
    span: {every: 1 s, size: 10 s}
    emit: {n: count(*), mean: avg(x), spread: stddev(x)}
  - name: long
    partition_by: [k]
    span: {every: 2 s, size: 25 s}
    where: count(*) > 2
    emit: {n: count(*), noise: stddev(x), level: avg(x)}
  - name: all
    span: {every: 5 s, size: 20 s}
    emit: {least: min(x), greatest: max(x), first: first(k)}
"""


def test_a_query_stopped_between_batches_gives_the_cores_matches(tmp_path: Path) -> None:
    spec = stopped_job(tmp_path, RULES, seed=11)
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    assert {row["rule"] for row in found} == {"short", "long", "all"}


def test_a_rule_that_goes_leaves_the_panes_that_it_shared(tmp_path: Path) -> None:
    both = RULES.replace("every: 2 s, size: 25 s", "every: 1 s, size: 25 s")
    spec = job(tmp_path, finish=False, rules=both)
    events = random_events(12)
    write_files(tmp_path, events[:120], 3)
    run_job(spec)
    start = both.index("  - name: short")
    alone = both[:start] + both[both.index("  - name: long") :]
    write_files(tmp_path, events[120:], 2, first=3)
    spec = job(tmp_path, rules=alone)
    run_job(spec)
    expected = in_core(spec).matches.to_pylist()
    found = [row for row in table(spec, "matches").to_pylist() if row["rule"] != "short"]
    assert sorted(row["out_seq"] for row in found if row["rule"] == "long") == list(
        range(sum(row["rule"] == "long" for row in expected))
    )
    assert levels(found) == levels(expected)


def levels(rows: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    return {(row["key"], row["selection_id"]): row["level"] for row in rows if row["rule"] == "long"}

"""Rules that share panes in the streaming query: the core's matches when one of them goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_pace.job import run_job
from tests.spark.jobs import in_core, job, random_events, table, write_files

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
    span: {every: 1 s, size: 25 s}
    where: count(*) > 2
    emit: {n: count(*), noise: stddev(x), level: avg(x)}
"""


def test_a_rule_that_goes_leaves_the_panes_that_it_shared(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=RULES)
    events = random_events(12)
    write_files(tmp_path, events[:120], 2)
    run_job(spec)
    alone = RULES[: RULES.index("  - name: short")] + RULES[RULES.index("  - name: long") :]
    write_files(tmp_path, events[120:], 1, first=2)
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

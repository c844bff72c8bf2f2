"""Sessions in the streaming query: the core's matches, stopped or not, and the sessions of Spark's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.jobs import in_core, matches, stopped_job
from tests.support.results import micros

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

RULES = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: plain
    partition_by: [k]
    span: {gap: 4 s}
    emit: {n: count(*), total: sum(x)}
  - name: short
    span: {gap: 4 s, within: 10 s}
    where: count(*) > 2
    emit: {n: count(*), usual: mode(kind)}
  - name: inside
    partition_by: [k]
    span: {gap: 6 s, within: 40 s}
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}, {name: c, when: "kind = 'c'", not: true}]}
    emit: {first: a.x}
  - name: sums
    partition_by: [k]
    span: {gap: 5 s}
    operator: tests.spark.jobs:total
    emit: {total: BIGINT, events_in_span: BIGINT}
  - name: long_ones
    from: plain
    pattern: {sequence: [{s: n > 3}]}
    emit: {size: s.n}
"""
OF_SPARK = """
SELECT k, unix_micros(session_window.start), unix_micros(session_window.end), count(*), sum(x)
FROM read_files GROUP BY k, session_window(t, '4 seconds')
"""


def test_a_query_stopped_between_batches_gives_the_cores_sessions_and_those_of_spark(
    tmp_path: Path, spark: SparkSession
) -> None:
    spec = stopped_job(tmp_path, RULES, seed=21)
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    assert {row["rule"] for row in found} == {"plain", "short", "inside", "sums", "long_ones"}
    read = spark.read.schema("t TIMESTAMP, k STRING, kind STRING, x BIGINT").json(str(tmp_path / "in"))
    read.createOrReplaceTempView("read_files")
    theirs = [tuple(row) for row in spark.sql(OF_SPARK).collect()]
    ours = [
        (row["k"], micros(row["opened_at"]), micros(row["matched_at"]), row["n"], row["total"])
        for row in found
        if row["rule"] == "plain"
    ]
    assert sorted(ours, key=str) == sorted(theirs, key=str)

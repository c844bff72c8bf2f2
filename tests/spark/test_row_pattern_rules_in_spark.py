"""Row patterns as rules of a job: the core's matches, whatever stops it, and what SQL gives at rest."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import spark_pace
from spark_pace.job import run_job
from tests.spark.jobs import EVENTS, in_core, job, matches, random_events, stop_at, table, write_files
from tests.support.row_pattern_cases import found_rows

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FALLING = """PARTITION BY k ORDER BY t
      MEASURES FIRST(x) AS top, LAST(down.x) AS bottom, COUNT(*) AS events_in,
        MATCH_NUMBER() AS number
      PATTERN (strt down+ up) WITHIN INTERVAL '8' SECOND
      DEFINE down AS x < PREV(x), up AS x > PREV(x)"""
RULES = f"""{EVENTS}  - name: falling
    match_recognize: |
      {FALLING}
  - name: above_average
    match_recognize: |
      ORDER BY t
      MEASURES MATCH_NUMBER() AS number, AVG(a.x) AS average, CLASSIFIER() AS last
      AFTER MATCH SKIP TO NEXT ROW
      PATTERN (a{{2,4}} (b | c))
      DEFINE a AS x > 1, b AS b.x > 2 * AVG(a.x), c AS kind = 'c' AND NEXT(kind) = 'a'
  - name: forgotten
    filter: x > 1
    forget_key_after: 3 s
    match_recognize: |
      PARTITION BY k, kind ORDER BY t MEASURES LAST(x) AS x, MATCH_NUMBER() AS number
      AFTER MATCH SKIP TO NEXT ROW PATTERN (a* b) DEFINE a AS x > 3
  - name: twice
    from: [falling, forgotten]
    partition_by: [k]
    pattern: {{sequence: [a: rule = 'falling', b: rule = 'forgotten']}}
    within: 20 s
    emit: {{top: a.top, x: b.x}}
"""
QUERY = """SELECT m.k AS owner, m.* FROM {} MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY t
  MEASURES FIRST(t) AS began, LAST(down.x) AS bottom, COUNT(*) AS key, soundex(LAST(kind)) AS `sounds like`
  PATTERN (strt down+ up) WITHIN INTERVAL '8' SECOND
  DEFINE down AS x < PREV(x), up AS x > PREV(x)) AS m WHERE m.key >= 3"""


@pytest.mark.in_parts
def test_a_job_that_fails_and_stops_between_batches_gives_the_cores_matches(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=RULES)
    events = random_events(7, 300)
    write_files(tmp_path, events[:200], 2)
    with pytest.MonkeyPatch.context() as failing, pytest.raises(Exception, match="disk is full"):
        stop_at(failing, "matches", batch_id=1)
        run_job(spec)
    run_job(spec)
    write_files(tmp_path, events[200:], 1, first=2)
    run_job(replace(spec, finish=True))
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    assert found == in_core(spec, whole=True).matches.to_pylist()
    number = Counter(row["rule"] for row in found)
    assert {rule.name: number[rule.name] > 5 for rule in spec.rules} == dict.fromkeys(number, True)
    assert max(table(spec, "metrics").to_pylist(), key=lambda row: row["batch_id"])["carry"] == 0
    assert of_stream(found) == at_rest(events)


def of_stream(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    rows = [row for row in found if row["rule"] == "falling"]
    return sorted(
        (row["k"], row["selection_id"], row["top"], row["bottom"], row["events_in"]) for row in rows
    )


def at_rest(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The same of the clause over all events as a table."""
    table = pa.Table.from_pylist([{**one, "t": datetime.fromisoformat(one["t"])} for one in events])
    rows = found_rows(f"SELECT * FROM events MATCH_RECOGNIZE ({FALLING})", table)
    return [(row["k"], row["number"] - 1, row["top"], row["bottom"], row["events_in"]) for row in rows]


def test_sql_over_a_stream_gives_what_it_gives_over_the_rows_at_rest(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    events = random_events(11, 120)
    later = {"t": "2024-01-02T00:00:00", "k": "z", "kind": "a", "x": 1}  # whose time ends all windows
    write_files(tmp_path, [*events, later], 3)
    for second, path in enumerate(sorted((tmp_path / "in").iterdir())):  # Spark takes the oldest first
        os.utime(path, (1_700_000_000 + second, 1_700_000_000 + second))
    columns = "t timestamp, k string, kind string, x int"
    reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
    arriving = reader.json(f"{tmp_path}/in").withWatermark("t", "2 seconds")
    arriving.createOrReplaceTempView("arriving")
    found = spark_pace.sql(spark, QUERY.format("arriving"))
    assert found.isStreaming
    query = found.writeStream.format("memory").queryName("found").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    spark.read.schema(columns).json(f"{tmp_path}/in").createOrReplaceTempView("at_rest")
    whole = spark_pace.sql(spark, QUERY.format("at_rest"))
    assert found.schema.simpleString() == whole.schema.simpleString()
    rows = sorted(map(tuple, spark.table("found").collect()))
    assert rows == sorted(map(tuple, whole.collect()))
    assert len(rows) > 5

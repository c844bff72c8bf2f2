"""Row patterns over a stream, by SQL: what it gives at rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_pace
from tests.spark.jobs import random_events, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

QUERY = """SELECT m.k AS owner, m.* FROM {} MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY t
  MEASURES FIRST(t) AS began, LAST(down.x) AS bottom, COUNT(*) AS key, soundex(LAST(kind)) AS `sounds like`
  PATTERN (strt down+ up) WITHIN INTERVAL '8' SECOND
  DEFINE down AS x < PREV(x), up AS x > PREV(x)) AS m WHERE m.key >= 3"""


@pytest.mark.long
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

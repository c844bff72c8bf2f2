"""MATCH_RECOGNIZE without PARTITION BY: tasks sort and pack the rows, beside Spark, which sorts in one task.

Timed is the query over Parquet files whose rows are in no order, from the call that runs it to its end; the
rows of the result are computed and written nowhere. Each number of slots has a process of its own, and both
ways run there in turns, after a round to warm up that compares their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.jobs import DATA
from benchmarks.processes import alone as alone_in
from benchmarks.rows import Row, Sizes, ratio_in_turns, require, wall
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.occurrences import occurrences_in
from spark_pace.rules.row_patterns.words import read_query
from spark_pace.spark.row_patterns import matched, task
from spark_pace.spark.session import build_session

Seconds = dict[str, tuple[list[float], list[float]]]  # of each case: Spark sorts, and tasks sort

FILES, FEW = 8, 1_000
MODES = {"a row per match": "ONE ROW PER MATCH", "all rows": "ALL ROWS PER MATCH"}
CLAUSE = """
    SELECT * FROM ticks MATCH_RECOGNIZE (
      ORDER BY time MEASURES FIRST(a.x) AS first, LAST(b.x) AS least, MATCH_NUMBER() AS n {mode}
      PATTERN (a b+ c+) DEFINE b AS x < PREV(x), c AS x > PREV(x))
"""
TARGETS = {("a row per match", 2): ">= 1.5"}  # of many rows
CHECKED = "each other"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Both ways with one slot and with two; the floor is Spark's sort, a ratio how many times as fast."""
    for slots in (1, 2):
        for events, modes in ((sizes.events, [*MODES]), (FEW, [*MODES][:1])):
            taken = alone_in("one_partition", slots, str(files(events)), modes, sizes.rounds)
            for mode, (spark, tasks) in taken.items():
                case = f"{mode}, {events:,} rows; {slots} slot{'s' * (slots > 1)}"
                target = TARGETS.get((mode, slots)) if events > FEW else None
                yield Row("one_partition", f"{case}, Spark sorts", median(spark), "s", 1.0, None, CHECKED)
                ratio = ratio_in_turns(tasks, spark)
                yield Row("one_partition", f"{case}, tasks sort", median(tasks), "s", ratio, target, CHECKED)


def files(events: int) -> Path:
    """A folder of Parquet files with so many rows: a walk of prices, each file a random share of it."""
    folder, random = DATA / f"walk-{events}", np.random.default_rng(1)
    prices = np.round(100 + np.cumsum(random.normal(size=events)), 2)
    names = np.array(["ACME", "Initech", "Hooli", "Umbrella"])[random.integers(0, 4, events)]
    walk = {"time": pa.array(np.arange(events) * 1_000_000, pa.timestamp("us", "UTC")), "x": prices}
    table = pa.table({**walk, "y": random.random(events), "name": names})
    table = table.take(pa.array(random.permutation(events)))
    folder.mkdir(parents=True, exist_ok=True)
    for number, share in enumerate(np.array_split(np.arange(events), FILES)):
        pq.write_table(table.slice(int(share[0]), len(share)), folder / f"{number}.parquet")
    return folder


def alone(slots: int, folder: str, modes: list[str], turns: int) -> Seconds:
    """The seconds of both ways in each turn, with so many slots."""
    spark = build_session("bench", {"spark.master": f"local[{slots}]", "spark.driver.memory": "6g"})
    try:
        frame, schema = spark.read.parquet(folder), pq.read_schema(Path(folder) / "0.parquet")
        return {name: in_turns(frame, clause_of(MODES[name], schema), turns) for name in modes}
    finally:
        spark.stop()


def clause_of(mode: str, schema: pa.Schema) -> RowPattern:
    """The plan of the clause."""
    query = read_query(CLAUSE.format(mode=mode), "query", "spark")
    return plan_of(query, occurrences_in(query)[0].clause, schema)


def in_turns(frame: DataFrame, plan: RowPattern, turns: int) -> tuple[list[float], list[float]]:
    """The seconds of both ways, which give the same rows."""
    found = [summary(way(frame, plan)) for way in (sorted_by_spark, matched)]
    require(found[0] == found[1], f"MATCH_RECOGNIZE — both ways must give the same rows; got {found}")
    require(found[0][0] > 0, "MATCH_RECOGNIZE — must find matches")
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for way, taken in zip((sorted_by_spark, matched), seconds, strict=True):
            taken.append(wall(way(frame, plan).write.format("noop").mode("overwrite").save))
    return seconds


def sorted_by_spark(frame: DataFrame, plan: RowPattern) -> DataFrame:
    """The rows of the result, where one task is handed all columns, sorted."""
    whole = frame.repartition(1).sortWithinPartitions("time")
    return whole.mapInArrow(task(plan, tuple(frame.columns)), matched(frame, plan).schema)


def summary(rows: DataFrame) -> tuple[int, int]:
    """How many rows there are, and a number that is made of all of them; no two rows are equal."""
    (one,) = rows.agg(F.count("*"), F.bit_xor(F.xxhash64("*"))).collect()
    return one[0], one[1]

"""MATCH_RECOGNIZE: rows that tasks sort come as if Spark had sorted them."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import spark_pace
from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.core.match.row_patterns.rows import sorted_table
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.queries import occurrences_in
from spark_pace.rules.row_patterns.words import read_query
from spark_pace.spark.row_patterns import matched

pytestmark = pytest.mark.spark

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [-128, 0, 127]),
    "short": (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 1 - 2**63, -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "float": (pa.float32(), [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5]),
    "double": (pa.float64(), [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -1e308]),
    "text": (pa.string(), ["", "a", "B", "ä", "\uffff", "🙂", "a\0", "ab"]),
    "day": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "time": (pa.timestamp("us", "UTC"), [datetime(1900, 1, 1), datetime(1970, 1, 1), datetime(2026, 1, 1)]),
    "local": (pa.timestamp("us"), [datetime(1900, 1, 1), datetime(1970, 1, 1), datetime(2026, 1, 1)]),
    "small": (pa.decimal128(5, 2), [Decimal("-1.25"), Decimal("0.00"), Decimal("999.99")]),
    "large": (pa.decimal128(38, 0), [Decimal(-(10**37)), Decimal(0), Decimal(1), Decimal(10**37)]),
}
DIRECTIONS = ["", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST"]
ALL_ROWS = """
    SELECT * FROM rows MATCH_RECOGNIZE (
      ORDER BY t MEASURES MATCH_NUMBER() AS n, CLASSIFIER() AS v, PREV(FIRST(x)) AS before,
        NEXT(LAST(x), 2) AS behind, LAST(b.s) AS whole, COUNT(*) AS c
      ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a b+? c* d | ^ a) WITHIN INTERVAL '60' SECOND
      DEFINE b AS x <> PREV(x, 2), c AS x <= NEXT(x), d AS x > 1)
"""


def awkward(random: Random, rows: int) -> pa.Table:
    columns = {
        name: pa.array(random.choices([*values, None], k=rows), kind)
        for name, (kind, values) in VALUES.items()
    }
    return pa.table({"id": pa.array(range(rows), pa.int32()), **columns})


def test_tasks_sort_every_plain_type_as_spark_does(spark: SparkSession) -> None:
    """Several types at a time: the later ones decide where the earlier ones are equal."""
    spark.createDataFrame(awkward(Random(1), 400)).createOrReplaceTempView("awkward")
    ours, sparks = [], []
    for first in range(4):
        names = [*VALUES][first::4]
        keys = [f"{name} {DIRECTIONS[(first + place) % 4]}" for place, name in enumerate(names)]
        order = ", ".join([*keys, "id"])
        ours.append(
            f"SELECT {first} AS first, id, n FROM awkward MATCH_RECOGNIZE ("
            f"ORDER BY {order} MEASURES id AS id, MATCH_NUMBER() AS n PATTERN (a))"
        )
        sparks.append(f"SELECT {first}, id, row_number() OVER (ORDER BY {order}) FROM awkward")
    found = spark_pace.sql(spark, " UNION ALL ".join(ours)).collect()
    expected = spark.sql(" UNION ALL ".join(sparks)).collect()
    assert len(found) == 4 * 400
    assert {tuple(row) for row in found} == {tuple(row) for row in expected}


def test_columns_of_any_type_come_through_from_tasks_of_which_some_have_no_rows(spark: SparkSession) -> None:
    parts = """
        timestamp_seconds((id * 7) % 300 * 2) AS t, pmod(hash(id), 4) AS x, array(id, null) AS `a.b`,
        named_struct('id', nullif(id, 7), 'text', nullif(string(id), '')) AS s, map(id, 'x') AS m,
        binary(string(id)) AS y, id / 3BD AS d, if(id % 3 = 0, null, string(id)) AS text, id
    """
    spark.range(300, numPartitions=10).createOrReplaceTempView("numbers")
    frame = spark.sql(f"SELECT {parts} FROM numbers")
    frame = frame.where("id < 40 OR id > 250")
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("x", pa.int32()), ("s", pa.binary())])
    query = read_query(ALL_ROWS, "query", "spark")
    plan = plan_of(query, occurrences_in(query)[0].clause, schema)
    expected = result_of(plan, sorted_table(frame.toArrow(), (), plan.order)).to_pydict()
    found = matched(frame, plan).toArrow().to_pydict()
    assert [*found.values()] == [*expected.values()]
    assert len({*expected["n"]}) > 5
    assert len(expected["t"]) == 89
    assert matched(frame.where("id < 0"), plan).count() == 0


def test_columns_that_a_query_does_not_read_are_not_computed(spark: SparkSession) -> None:
    spark.range(9).selectExpr("id", "int(concat('x', id)) AS bad", "id % 2 AS k").createOrReplaceTempView(
        "numbers"
    )
    query = "SELECT * FROM numbers MATCH_RECOGNIZE ({} MEASURES COUNT(*) AS n {} PATTERN (a+))"
    assert spark_pace.sql(spark, query.format("", "")).collect()[0].n == 9
    assert len(spark_pace.sql(spark, query.format("PARTITION BY k ORDER BY id", "")).collect()) == 2
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark_pace.sql(spark, query.format("", "ALL ROWS PER MATCH")).collect()


def test_keys_that_are_equal_meet_in_one_task(spark: SparkSession) -> None:
    """0.0 and -0.0, what is not a number, and null, however many tasks there are."""
    keys = pa.array([0.0, -0.0, math.nan, -math.nan, None, None, 1.5, 1.5])
    single = keys.cast(pa.float32())
    table = pa.table({"k": keys, "f": single, "i": range(8)})
    spark.createDataFrame(table).repartition(8).createOrReplaceTempView("alike")
    clause = "PARTITION BY {} ORDER BY i MEASURES COUNT(*) AS n PATTERN (a+)"
    tasks = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 32)
    try:
        for key in ("k", "f", "k, f"):
            found = spark_pace.sql(spark, f"SELECT n FROM alike MATCH_RECOGNIZE ({clause.format(key)})")
            assert [row.n for row in found.collect()] == [2, 2, 2, 2]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", tasks)


def test_rows_of_many_partitions_of_the_input_stay_in_its_order(spark: SparkSession) -> None:
    spark.range(0, 300, 1, 16).createOrReplaceTempView("many")
    query = "SELECT id FROM many MATCH_RECOGNIZE (MEASURES LAST(id) AS id PATTERN (A))"
    assert [row.id for row in spark_pace.sql(spark, query).collect()] == list(range(300))


def test_a_match_that_cannot_be_skipped_ends_the_query_with_its_reason(spark: SparkSession) -> None:
    query = """SELECT * FROM range(9) MATCH_RECOGNIZE (ORDER BY id AFTER MATCH SKIP TO b PATTERN (a b?)
               DEFINE b AS id < 5)"""
    with pytest.raises(PythonException, match="must lead to a row behind the first row of every match"):
        spark_pace.sql(spark, query).collect()

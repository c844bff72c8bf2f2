"""`spark_pace.sql`: queries with MATCH_RECOGNIZE give on Spark what the engine gives without it."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import spark_pace
from spark_pace.errors import ConfigError
from tests.support.examples import tried
from tests.support.row_pattern_cases import SKIPPED, trial_of
from tests.support.row_pattern_examples import EXAMPLES, TICKER, V_SHAPE, Example

pytestmark = pytest.mark.spark


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return frame.toArrow().to_pylist()  # type: ignore[no-any-return]


def lower(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name.lower(): cell for name, cell in row.items()} for row in rows]


@pytest.fixture(autouse=True)
def _ticker(spark: SparkSession) -> None:
    spark.createDataFrame(TICKER).createOrReplaceTempView("ticker")


OF_EACH_DIALECT = {one.dialect: one for one in reversed(EXAMPLES)}  # the first one


@pytest.mark.parametrize("example", OF_EACH_DIALECT.values(), ids=OF_EACH_DIALECT)
def test_examples_of_other_dialects_give_the_rows_of_their_documents(
    example: Example, spark: SparkSession
) -> None:
    """The engine answers all examples without Spark in a unit test."""
    name = re.search(r"FROM\s+(\w+)", example.query)
    assert name is not None
    spark.createDataFrame(example.table).createOrReplaceTempView(name[1])
    found = spark_pace.sql(spark, example.query, dialect=example.dialect)
    assert lower(rows_of(found)) == lower(example.rows)


def test_the_example_of_the_documentation_runs(spark: SparkSession) -> None:
    assert tried(spark_pace.sql, {"spark": spark}) > 2


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 12))]
)
def test_random_clauses_give_the_rows_of_the_engine(seed: int, spark: SparkSession) -> None:
    trial = trial_of(Random(10_000 + seed))
    spark.createDataFrame(trial.table).createOrReplaceTempView("rows")
    expected = trial.found()
    found = spark_pace.sql(spark, trial.sql)
    if expected == SKIPPED:
        with pytest.raises(PythonException, match=SKIPPED):
            found.collect()
        return
    table = found.toArrow()
    kinds = [pa.int64() if pa.types.is_timestamp(one.type) else one.type for one in table.schema]
    plain = table.cast(pa.schema(zip(table.column_names, kinds, strict=True))).to_pylist()
    assert isinstance(expected, list)
    assert sorted(plain, key=repr) == sorted(expected, key=repr)


@pytest.mark.over_with
def test_the_rest_of_the_query_is_sparks(spark: SparkSession) -> None:
    """Names of WITH, joins, a clause over a clause, and several clauses."""
    v_shape = V_SHAPE.replace("ORDER BY symbol, start_tstamp", "").replace("FROM ticker", "FROM {}")
    query = f"""
        WITH early AS (SELECT * FROM ticker WHERE day(tstamp) < 15), -- MATCH_RECOGNIZE (
             shapes AS ({v_shape.format("early")}),
             long AS (SELECT * FROM shapes MATCH_RECOGNIZE (
               ORDER BY start_tstamp MEASURES end_tstamp AS ended PATTERN (A)
               DEFINE A AS datediff(end_tstamp, start_tstamp) > 3))
        SELECT t.price, upper(s.symbol) AS sym, 'MATCH_RECOGNIZE (' AS text
        FROM (SELECT * FROM ticker) AS other MATCH_RECOGNIZE (
               PARTITION BY symbol ORDER BY tstamp MEASURES LAST(tstamp) AS tstamp PATTERN (A{{10}})) AS ten
        JOIN long ON ten.tstamp = long.ended
        JOIN ticker AS t ON t.tstamp = long.ended
        JOIN shapes AS s ON s.end_tstamp = long.ended;
    """
    found = rows_of(spark_pace.sql(spark, query))
    assert found == [{"price": 25, "sym": "ACME", "text": "MATCH_RECOGNIZE ("}]
    assert [one.name for one in spark.catalog.listTables() if one.name.startswith("spark_pace_")] == []


def test_a_query_without_the_clause_is_sparks(spark: SparkSession) -> None:
    assert rows_of(spark_pace.sql(spark, "SELECT count(*) AS n FROM ticker")) == [{"n": 20}]


def test_types_are_known_before_and_columns_of_any_type_come_through(spark: SparkSession) -> None:
    query = """
        SELECT * FROM (SELECT *, array(price) AS `a.b`, struct(price) AS s, CAST(price AS SMALLINT) AS small,
                              CAST(price AS DECIMAL(10,2)) AS d FROM ticker)
        MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY tstamp DESC
          MEASURES FIRST(`a.b`) AS listed, s AS whole, MAX(small) AS most, SUM(d) AS total, AVG(d) AS mean,
                   LAST(d * 2) AS twice, COUNT(*) AS n
          ALL ROWS PER MATCH PATTERN (A A))
    """
    found = spark_pace.sql(spark, query)
    assert found.columns == [
        *("SYMBOL", "tstamp", "listed", "whole", "most", "total", "mean", "twice", "n"),
        *("price", "a.b", "s", "small", "d"),
    ]
    types = {name: kind for name, kind in found.dtypes if name in found.columns[2:9]}
    assert types == {
        "listed": "array<int>", "whole": "struct<price:int>", "most": "smallint", "total": "decimal(20,2)",
        "mean": "decimal(14,6)", "twice": "decimal(12,2)", "n": "bigint",
    }  # fmt: skip
    row = found.orderBy("tstamp").first()
    assert row is not None
    assert row.asDict(recursive=True)["whole"] == {"price": 12}
    assert (row["listed"], row["most"], row["n"], str(row["mean"])) == ([17], 17, 2, "14.500000")


def test_functions_and_types_that_are_sparks_are_computed_by_spark(spark: SparkSession) -> None:
    """In measures; what they read of matches is computed first."""
    query = """
        SELECT * FROM (SELECT *, struct(price + 1 AS p) AS s FROM ticker)
        MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY tstamp
          MEASURES format_string('%s %d', lower(A.symbol), COUNT(*)) AS text, price AS last,
                   A.s.p + s.p AS parts, LAST(B.s).p AS part,
                   substring_index(CLASSIFIER() || '.x', '.', 1) AS `a``b`,
                   timestampdiff(DAY, FIRST(tstamp), tstamp) || initcap(FINAL LAST(symbol))
                   || CAST(AVG(price) AS STRING) AS named
          PATTERN (A B) DEFINE A AS price < NEXT(price))
        WHERE last = 17
    """
    found = spark_pace.sql(spark, query)
    assert found.columns == ["SYMBOL", "text", "last", "parts", "part", "a`b", "named"]
    assert dict(found.dtypes)["parts"] == "int"
    assert [list(row.values()) for row in rows_of(found)] == [
        ["ACME", "acme 2", 17, 31, 18, "B", "1Acme14.5"]
    ]
    with pytest.raises(ConfigError, match='query:4:20 — must be a known function; got "formatt_string"'):
        spark_pace.sql(spark, query.replace("format_string", "formatt_string"))
    with pytest.raises(ConfigError, match='must be a column of the input; got "prize"'):
        spark_pace.sql(spark, query.replace("AVG(price)", "repeat(prize, 2)"))
    with pytest.raises(ConfigError, match='must be the name of one column of the result; got "text"'):
        spark_pace.sql(spark, query.replace("AS parts", "AS TEXT"))


def test_functions_of_one_row_that_are_sparks_are_computed_before(spark: SparkSession) -> None:
    """In conditions and inside navigations and aggregates; none is a column of the result."""
    query = """SELECT * FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY tstamp
        MEASURES MAX(bin(up.price)) AS most
        ALL ROWS PER MATCH PATTERN (strt up+)
        DEFINE up AS bround(up.price, -1) > PREV(bround(price, -1))
          AND substr(symbol, 1, 2) = 'AC' AND soundex(strt.symbol) = soundex(up.symbol))"""
    found = spark_pace.sql(spark, query)
    assert found.columns == ["SYMBOL", "tstamp", "most", "price"]
    prices = [(row["price"], row["most"]) for row in found.orderBy("tstamp").collect()]
    assert prices == [
        *((12, None), (17, "10001")),
        *((12, None), (15, "1111")),
        *((14, None), (24, "11000")),
    ]
    with pytest.raises(ConfigError, match="must be a known function"):
        spark_pace.sql(spark, query.replace("soundex(up.symbol)", "array_agg(symbol)"))


def test_what_would_put_matches_together_or_double_them_is_no_measure(spark: SparkSession) -> None:
    for measure in (
        "array_agg(price)",
        "1 + stddev(A.price)",
        "explode(array(price))",
        "max_by(symbol, price)",
    ):
        query = f"SELECT * FROM ticker MATCH_RECOGNIZE (MEASURES {measure} AS m PATTERN (A B))"
        with pytest.raises(ConfigError, match=r"query:1:48 — must be a value of one match") as refused:
            spark_pace.sql(spark, query)
        assert f'got "{measure}". Compute other aggregates from ALL ROWS PER MATCH' in str(refused.value)


def test_times_are_read_in_utc_or_refused(spark: SparkSession) -> None:
    query = """SELECT * FROM (SELECT CAST(tstamp AS TIMESTAMP) AS t FROM ticker)
               MATCH_RECOGNIZE (ORDER BY t MEASURES {} AS m PATTERN (A B))"""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        spark.sql("SELECT min(CAST(tstamp AS TIMESTAMP)) AS t FROM ticker").createOrReplaceTempView("least")
        found = spark_pace.sql(spark, query.format("FIRST(t)"))
        assert found.join(spark.table("least"), found.m == spark.table("least").t).count() == 1
        with pytest.raises(ConfigError, match="got a session in America/New_York"):
            spark_pace.sql(spark, query.format("hour(t)"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


REFUSED_OVER_STREAMS = {
    "ORDER BY timestamp ALL ROWS PER MATCH PATTERN (A)": "query:1:58 — must be ONE ROW PER MATCH",
    "ORDER BY timestamp DESC PATTERN (A)": "query:1:48 — must be ordered as the stream is: by the event",
    "ORDER BY timestamp PATTERN (A $)": "must not be part of a pattern over a stream",
    "ORDER BY timestamp PATTERN (A B+)": "query:1:22 — must be bounded over a stream",
}


def test_what_cannot_be_answered_is_refused_before_it_runs(spark: SparkSession) -> None:
    bad = "SELECT * FROM ticker MATCH_RECOGNIZE (\n  ORDER BY tstamp PATTERN (A) DEFINE A AS prize > 1)"
    with pytest.raises(ConfigError, match=r'query:2:43 — must be a column of the input; got "prize"'):
        spark_pace.sql(spark, bad)
    view = (
        "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY tstamp PATTERN (A))"
    )
    with pytest.raises(ConfigError, match="query:1:24 — must be a query, not a view of one"):
        spark_pace.sql(spark, view)
    stream = spark.readStream.format("rate").load()
    stream.createOrReplaceTempView("stream")
    with pytest.raises(ConfigError, match="query:1:48 — must be ordered by the column of a watermark first"):
        spark_pace.sql(spark, "SELECT * FROM stream MATCH_RECOGNIZE (ORDER BY timestamp PATTERN (A))")
    stream.withWatermark("timestamp", "1 minute").createOrReplaceTempView("stream")
    for clause, told in REFUSED_OVER_STREAMS.items():
        with pytest.raises(ConfigError, match=told):
            spark_pace.sql(spark, f"SELECT * FROM stream MATCH_RECOGNIZE ({clause})")
    both = """SELECT a.tstamp FROM ticker MATCH_RECOGNIZE (MEASURES tstamp AS tstamp PATTERN (A $)) AS a
        JOIN stream MATCH_RECOGNIZE (ORDER BY timestamp MEASURES value AS v PATTERN (A)) AS b ON b.v = 1"""
    assert spark_pace.sql(spark, both).isStreaming
    with pytest.raises(ConfigError, match="dialect — must be a known dialect"):
        spark_pace.sql(spark, "SELECT 1", dialect="sparc")
    with pytest.raises(ConfigError, match="query — must be a text; got int"):
        spark_pace.sql(spark, 1)  # type: ignore[arg-type]


def test_a_search_that_takes_too_long_ends_with_its_reason(spark: SparkSession) -> None:
    query = """SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY tstamp MEASURES COUNT(*) AS n
               PATTERN (A+ A+ A+ B) DEFINE A AS COUNT(*) > 0, B AS COUNT(*) < 0)"""
    with pytest.raises(PythonException, match=r"must take at most 1,000 steps; got more"):
        spark_pace.sql(spark, query, most_steps=1_000).collect()

"""Spark SQL and the core give aggregates the same value, group by group, on awkward and random values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_pace.core.expr import EventColumns, Expr, evaluate
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.lane_matches import SpanAggregates
from spark_pace.core.plan.meaning import computed_of
from spark_pace.core.split.panes import ContentsOfEvents
from spark_pace.core.tables import with_column
from spark_pace.rules.document import Place, Report, Scalar
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import span_scope
from tests.support.expression_cases import SCHEMA, table
from tests.support.spark_sql import as_written

pytestmark = pytest.mark.spark

ROWS, OF_GROUP = 900, 6
TEXTS = """
count(i) | count(s) | count(distinct i) | count(distinct x) | count(distinct s) | count(distinct d)
count(distinct p) | count(distinct i > j) | count(case when x > 0 then 1 end)
median(i) | median(x) | percentile(i, 0) | percentile(i, 1) | percentile(i, 0.3) | percentile(x, 0.95)
percentile(x, 0.5) | percentile(cast(i as double), 0.25) | median(case when p then x end)
mode(i) | mode(x) | mode(s) | mode(d)
max(x) | min(s) | max(case when p then i else j end) | sum(case when i > 0 then 1 else 2 end)
"""


def test_aggregates_are_what_they_are_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    texts = [text.strip() for line in TEXTS.strip().splitlines() for text in line.split("|")]
    events = table(ROWS, seed=11)
    pq.write_table(with_column(events, "number", np.arange(ROWS) // OF_GROUP), tmp_path / "events.parquet")
    with as_written(spark):
        spark.read.parquet(str(tmp_path / "events.parquet")).createOrReplaceTempView("awkward")
        theirs = spark.sql(
            f"SELECT {', '.join(map(in_spark, texts))} FROM awkward GROUP BY number ORDER BY number"
        ).toArrow()
    for place, text in enumerate(texts):
        pairs = zip(ours(text, events).to_pylist(), theirs.column(place).to_pylist(), strict=True)
        assert [pair for pair in pairs if not is_same(*pair)] == [], text


def in_spark(text: str) -> str:
    """Spark's mode is any of the most frequent ones, unless it is told to give the least."""
    return text.replace(")", ", true)") if text.startswith("mode") else text


def is_same(mine: Any, other: Any) -> bool:
    both_nan = isinstance(mine, float) and isinstance(other, float) and math.isnan(mine) and math.isnan(other)
    return both_nan or mine == other


def ours(text: str, events: pa.Table) -> pa.Array:
    """The value of each group of rows."""
    report = Report()
    expr: Expr | None = compile_value(Scalar(Place("test"), text, text, None), span_scope(SCHEMA), report)
    assert report.clean, report.problems
    assert expr is not None
    events = events.combine_chunks()
    for name, of in computed_of([expr]).items():
        events = with_column(events, name, evaluate(of, EventColumns(events)))
    start = np.arange(0, ROWS, OF_GROUP)
    contents = ContentsOfEvents(Stream(events, np.zeros(1, np.int64)))
    return evaluate(expr, SpanAggregates(contents, start, start + OF_GROUP))

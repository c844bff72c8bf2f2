"""Spark SQL and the core give an expression the same value, row by row, on awkward and random values."""

import math
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.expr import Column, Expr, Literal, evaluate
from spark_pace.rules.document import Place, Report, Scalar
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.patterns import rlike
from spark_pace.rules.expressions.scopes import event_scope
from spark_pace.rules.expressions.types import Wrong
from tests.support.expression_cases import SCHEMA, TableColumns, compiled, table
from tests.support.expression_texts import random_text, texts
from tests.support.spark_sql import as_written, to_spark_sql

pytestmark = pytest.mark.spark

ROWS = 600
PER_SELECT = 40
SCOPE = event_scope(SCHEMA)
PATTERN_PIECES = r"""
a B 1 s 🙂 . ^ | \z \A \d \D \w \W \s \S \. \n \x41 \x{2028} ] } ( ( (?: ) )
[a-s] [^a] [^\s-] [-a] [\S1] [\]^] [^.🙂] [\W_] [a|^] * +? ? {2} {0,1} {1,}
"""


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return table(ROWS, seed=7)


@pytest.fixture
def frame(spark: SparkSession, events: pa.Table, tmp_path: Path) -> Iterator[DataFrame]:
    """The same rows in Spark, in order (one file, one partition); expressions are computed as written."""
    for name in ("t", "u"):
        events = events.set_column(
            events.column_names.index(name), name, events[name].cast(pa.timestamp("us", "UTC"))
        )
    pq.write_table(events, tmp_path / "events.parquet")
    with as_written(spark):
        yield spark.read.parquet(str(tmp_path / "events.parquet"))


def test_every_operator_and_function_means_the_same(frame: DataFrame, events: pa.Table) -> None:
    assert not differences(texts(), frame, events)


def test_times_mean_what_they_mean_in_spark(frame: DataFrame, events: pa.Table) -> None:
    """As they are written: here they become microseconds, which `to_spark_sql` shows."""
    times = ("interval", "- u)", "date", "extract", "timestamp", "trunc", "last_day", "week", "unix_millis")
    written = [text for text in texts() if any(word in text for word in times) and "rlike" not in text]
    written = [text for text in written if "date_add(d, i" not in text]  # Spark takes no BIGINT there
    assert len(written) > 60
    theirs = frame.selectExpr(*(f"{text} AS `{index}`" for index, text in enumerate(written))).toArrow()
    found = []
    for index, text in enumerate(written):
        column = theirs[str(index)]
        whole = column.cast(pa.int64()) if pa.types.is_int32(column.type) else column
        found += compare(text, compiled(text), whole, events)
    assert found == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4))])
def test_random_nested_expressions_mean_the_same(frame: DataFrame, events: pa.Table, seed: int) -> None:
    chance = random.Random(seed)
    kinds = ["BOOLEAN", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "DATE"]
    drawn = [random_text(chance.choice(kinds), depth=4, chance=chance) for _ in range(60)]
    assert not differences(drawn, frame, events)


def test_what_is_read_as_written_is_read_in_the_order_of_spark(frame: DataFrame, events: pa.Table) -> None:
    """Every two operators one after the other, without parentheses: refused here, or the same in Spark."""
    written = [
        f"{prefix}{first} {one} {two}"
        for prefix in ("", "not ")
        for first in "pis"
        for one in operators("qjz")
        for two in operators("pis")
    ]
    read = {
        text: expr
        for text in written
        if (expr := compile_value(Scalar(Place("test"), text, text, None), SCOPE, Report())) is not None
    }
    result = frame.selectExpr(*(f"{text} AS `{index}`" for index, text in enumerate(read))).toArrow()
    assert [
        found
        for index, (text, expr) in enumerate(read.items())
        for found in compare(text, expr, result[str(index)], events)
    ] == []
    assert len(read) > 500


def operators(names: str) -> list[str]:
    """Each operator with each of the operands."""
    tests = [
        "= {}",
        "<> {}",
        "<=> {}",
        "< {}",
        ">= {}",
        "in ({}, {})",
        "not in ({}, {})",
        "between {} and {}",
        "is distinct from {}",
    ]
    alone = [
        "is null",
        "is not null",
        "is true",
        "is not true",
        "like 'a%'",
        "rlike 'a'",
        "not rlike 'b'",
        "not like 'b'",
        "- 0",
        "|| 'a'",
    ]
    return [form.format(name, name) for form in [*tests, "and {}", "or {}"] for name in names] + alone


def test_every_pattern_that_is_taken_means_the_same(spark: SparkSession) -> None:
    """But for `$`, which is the end of the text alone."""
    chance = random.Random(3)
    letters = "aB1_ -\n\r\x0b\t\x1f\x85\u2028éſK🙂.]^}s"
    texts = ["".join(chance.choice(letters) for _ in range(chance.randrange(5))) for _ in range(300)]
    pieces = PATTERN_PIECES.split()
    drawn = ("".join(chance.choice(pieces) for _ in range(chance.randrange(1, 7))) for _ in range(3_000))
    column, rows = pa.table({"s": texts}), spark.createDataFrame([(text,) for text in texts], "s STRING")
    taken = {}
    for pattern in drawn:
        built = rlike([Column(None, "s", "STRING"), Literal(pattern, "STRING")])
        if not isinstance(built, Wrong) and len(taken) < 400:
            taken[pattern] = built
    result = rows.coalesce(1).selectExpr(
        *(f"{to_spark_sql(expr)} AS `{index}`" for index, expr in enumerate(taken.values()))
    )
    theirs = result.toArrow()
    found = [
        found
        for index, (pattern, expr) in enumerate(taken.items())
        for found in compare(pattern, expr, theirs[str(index)], column)
    ]
    assert found == []
    assert len(taken) == 400


def test_a_text_constant_survives_quotes_backslashes_and_line_ends(spark: SparkSession) -> None:
    expr = compiled(r"'it\'s \\ a' || '%' || '日本' || '${x}'")
    (row,) = spark.range(1).selectExpr(to_spark_sql(expr)).collect()
    assert row[0] == r"it's \ a%日本${x}"


def differences(written: list[str], frame: DataFrame, events: pa.Table) -> list[str]:
    """Where Spark and the core differ: the expression, both values and the row."""
    found: list[str] = []
    for start in range(0, len(written), PER_SELECT):
        exprs = {text: compiled(text) for text in written[start : start + PER_SELECT]}
        result = frame.selectExpr(
            *(f"{to_spark_sql(expr)} AS `{index}`" for index, expr in enumerate(exprs.values()))
        ).toArrow()
        for index, (text, expr) in enumerate(exprs.items()):
            found += compare(text, expr, result[str(index)], events)
    return found


def compare(text: str, expr: Expr, theirs: pa.ChunkedArray, events: pa.Table) -> list[str]:
    ours = evaluate(expr, TableColumns(events))
    assert len(ours) == events.num_rows
    if pa.types.is_timestamp(theirs.type):
        theirs = theirs.cast(pa.timestamp("us"))
    if ours.type != theirs.type:
        return [f"{text}: {ours.type} here, {theirs.type} in Spark"]
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    rows = [row for row, (here, there) in enumerate(pairs) if not same(here, there)]
    return [
        f"{text}: {ours[row]} here, {theirs[row]} in Spark, for {events.slice(row, 1).to_pylist()[0]}"
        for row in rows[:1]
    ]


def same(here: object, there: object) -> bool:
    if isinstance(here, float) and isinstance(there, float) and math.isnan(here):
        return math.isnan(there)
    return (here, str(here)) == (there, str(there))  # -0.0 is not 0.0

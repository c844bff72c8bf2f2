"""Any expression as Spark SQL, to compare the two.

In a session with the time zone UTC, the text means to Spark what `spark_pace.core.expr.evaluation` computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark_pace.core.expr import Call, Expr
from spark_pace.spark.detect import TESTS, in_sql, plain_sql

_QUOTE = "'"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

_TEMPLATES = TESTS | {
    "+": "try_add({}, {})",
    "-": "try_subtract({}, {})",
    "*": "try_multiply({}, {})",
    "/": "try_divide({}, {})",
    "%": "try_mod({}, {})",
    "length": "CAST(length({}) AS BIGINT)",
    "rlike": "({} RLIKE {})",  # the third argument is for RE2
    "size": "CAST(size({}) AS BIGINT)",
    "date_add": "date_add({}, CAST({} AS INT))",
    "element_at": "try_element_at({}, CAST({} AS INT))",
    "lower": f"translate({{}}, '{_LETTERS.upper()}', '{_LETTERS}')",
    "upper": f"translate({{}}, '{_LETTERS}', '{_LETTERS.upper()}')",
}
_NARROW = (  # INT in Spark
    *("year", "quarter", "month", "day", "dayofweek", "dayofyear", "hour", "minute", "second", "datediff"),
    *("weekday", "weekofyear"),
)


@contextmanager
def as_written(spark: SparkSession) -> Iterator[None]:
    """Keep Spark from adding the constants of ``i + 1 + 2`` first: a sum that overflows midway is null."""
    spark.conf.set(
        "spark.sql.optimizer.excludedRules",
        "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator",
    )
    yield
    spark.conf.unset("spark.sql.optimizer.excludedRules")


def to_spark_sql(expr: Expr) -> str:
    """The expression as Spark SQL text over columns that bear the attributes' names."""
    if not isinstance(expr, Call):
        return plain_sql(expr)
    return _call(expr, [to_spark_sql(argument) for argument in expr.arguments])


def _call(call: Call, arguments: list[str]) -> str:
    name = call.function
    if name == "cast":
        return f"try_cast({arguments[0]} AS {call.type})"
    if name == "case":
        branches = [f"WHEN {arguments[i]} THEN {arguments[i + 1]}" for i in range(0, len(arguments) - 1, 2)]
        return f"CASE {' '.join(branches)} ELSE {arguments[-1]} END"
    if name == "in":
        return in_sql(call, arguments)
    if name in ("negate", "abs"):
        return _signed(call, arguments[0])
    if name in ("timestampadd", "timestampdiff"):
        unit, *others = arguments
        return f"{name}({unit.strip(_QUOTE)}, {', '.join(others)})"
    if name in _TEMPLATES:
        return _TEMPLATES[name].format(*arguments)
    text = f"{name}({', '.join(arguments)})"
    return f"CAST({text} AS BIGINT)" if name in _NARROW else text


def _signed(call: Call, value: str) -> str:
    """Spark has no try_negative and no try_abs: the least BIGINT would raise an error."""
    if call.type != "BIGINT":
        return f"(- {value})" if call.function == "negate" else f"abs({value})"
    if call.function == "negate":
        return f"try_subtract(0L, {value})"
    return f"try_cast(abs(CAST({value} AS DECIMAL(20, 0))) AS BIGINT)"

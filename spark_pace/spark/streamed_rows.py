"""`MATCH_RECOGNIZE` over a streaming DataFrame: the matches of a rule, found as `detect` finds them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as kinds

from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.plan.meaning import attributes_of
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.plan.rule import EmitField, EventSchema, Field, Rule
from spark_pace.errors import ConfigError
from spark_pace.io.delta_tables import quoted
from spark_pace.rules.match_recognize import require_bound, require_streaming
from spark_pace.rules.row_patterns.clause import Clause
from spark_pace.rules.row_patterns.words import Query
from spark_pace.spark.detect import detect

_DELAY = "spark.watermarkDelayMs"  # the key under which Spark notes the delay beside a column
_TYPES: dict[type[kinds.DataType], str] = {
    kinds.BooleanType: "BOOLEAN",
    **dict.fromkeys((kinds.ByteType, kinds.ShortType, kinds.IntegerType, kinds.LongType), "BIGINT"),
    **dict.fromkeys((kinds.FloatType, kinds.DoubleType), "DOUBLE"),
    kinds.StringType: "STRING",
    kinds.DateType: "DATE",
    kinds.TimestampType: "TIMESTAMP",
}


def streamed(frame: DataFrame, plan: RowPattern, query: Query, clause: Clause) -> DataFrame:
    """The key and the measures of each match, named by their numbers, in the order of the result.

    Raises:
        ConfigError: the clause asks for what a stream cannot answer.
    """
    delay_us = _delay_us(frame, plan, query, clause)
    order = tuple(key.column for key in plan.order)
    used = {*attributes_of(plan.reads), *plan.partition, *order}
    fields = tuple(_field(frame.schema[name], plan) for name in frame.columns if name in used)
    schema = EventSchema(fields, order[0], order[1:])
    require_streaming(query, clause, plan, schema)
    require_bound(query, clause, plan, "forget_key_after to a rule with match_recognize")
    types = {field.name: field.type for field in fields}
    emit = tuple(
        EmitField(f"measure{number}", _type_of(one.stored, str(expression_type(one.type)), types), None)
        for number, one in enumerate(plan.measures)
    )
    rule = Rule("rows", schema, None, plan.partition, None, None, None, "detection", emit, rows=plan)
    found = detect(frame.select(*(F.col(quoted(name)) for name in types)), [rule], delay_us=delay_us)
    names = [*plan.partition, *(field.name for field in emit)]
    return found.select(*(F.col(quoted(name)).alias(str(number)) for number, name in enumerate(names)))


def _type_of(stored: str | None, computed: str, types: dict[str, str]) -> str:
    return computed if stored is None else types[stored]


def _delay_us(frame: DataFrame, plan: RowPattern, query: Query, clause: Clause) -> int:
    """How late rows may come, as the watermark says it of the column that orders them first."""
    metadata = frame.schema[plan.order[0].column].metadata if plan.order else {}
    if _DELAY not in metadata:
        at = clause.order[0].name if clause.order else clause.opening
        must = "must be ordered by the column of a watermark first, where the input streams"
        do = 'Call withWatermark("time", "1 minute") of the DataFrame, and write ORDER BY time.'
        query.fail(at, must, "another column" if plan.order else "none", do)
    return int(metadata[_DELAY]) * 1000


def _field(column: kinds.StructField, plan: RowPattern) -> Field:
    """A column as an attribute of events.

    Raises:
        ConfigError: it has a type that attributes do not have, or no match can have its name.
    """
    kind = column.dataType
    if isinstance(kind, kinds.DecimalType):
        return Field(column.name, f"DECIMAL({kind.precision},{kind.scale})")
    found = _TYPES.get(type(kind))
    if found is None:
        must = "must read columns of plain types, where the input streams"
        do = "Cast it, or take a part of it, in a subquery."
        raise ConfigError.of(plan.where, must, f"{column.name}, {kind.simpleString()}", do)
    if column.name.lower() in FIXED_COLUMNS or not column.name.isidentifier():
        must = "must read columns that are named by letters, digits and _, where the input streams"
        do = f"Rename it in a subquery, but not to {', '.join(FIXED_COLUMNS)}."
        raise ConfigError.of(plan.where, must, column.name, do)
    return Field(column.name, found)

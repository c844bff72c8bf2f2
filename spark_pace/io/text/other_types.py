"""Tells how a column of a frame becomes one of the type that the rules declare."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import decimal_digits
from spark_pace.core.plan.rule import EventSchema, Field

_ELSE = "Build the column with that type."
_FRACTIONS = "It has fractions: declare it DOUBLE, or write in pandas .round()"
# the kind of a column, the type of its attribute: what makes the one the other
_BY_PANDAS = {
    ("text", "BIGINT"): '.astype("Int64"), which has room for missing numbers',
    ("text", "DOUBLE"): ".astype(float)",
    ("text", "DECIMAL"): '.map(Decimal, na_action="ignore"), with Decimal of decimal',
    ("float", "BIGINT"): '.astype("Int64"), which has room for missing numbers',
    ("float", "DECIMAL"): ".round({digits}).astype(str).map(Decimal), with Decimal of decimal",
    ("integer", "BOOLEAN"): '.astype("boolean"), if its numbers are 0 and 1',
    ("float", "BOOLEAN"): '.astype("boolean"), if its numbers are 0 and 1',
    ("integer", "TIMESTAMP"): 'pd.to_datetime(frame["{name}"], unit="s"), with the unit of its numbers',
    ("integer", "STRING"): '.astype("string")',
    ("time", "DATE"): ".dt.date",
}


def how_to_build(table: pa.Table, field: Field, schema: EventSchema) -> str:
    """Return the advice for a column that has another type than its attribute.

    Args:
        table: the table with the column.
        field: the attribute.
        schema: all attributes.
    """
    if table.column_names.count(field.name) > 1:
        return "Drop or rename one."
    if field.name not in table.column_names:  # it is inside of another column
        return _ELSE
    column, digits = table[field.name], decimal_digits(field.type)
    found = _kind(column.type), "DECIMAL" if digits else field.type
    if found not in _BY_PANDAS:
        return _ELSE
    do = _BY_PANDAS[found].format(name=field.name, digits=digits and digits[1])
    if found == ("float", "BIGINT") and not _is_whole(column):
        return f"{_FRACTIONS}{do}."
    of_times = ""
    if found == ("integer", "TIMESTAMP") and field.name == schema.event_time:
        of_times = " Or declare it BIGINT, with time_unit: s in events."
    return f"In pandas, write {do}.{of_times}"


def _kind(kind: pa.DataType) -> str | None:
    is_ = pa.types
    if is_.is_dictionary(kind):
        return _kind(kind.value_type)
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return "text"
    if is_.is_floating(kind):
        return "float"
    if is_.is_integer(kind):
        return "integer"
    return "time" if is_.is_timestamp(kind) else None


def _is_whole(column: pa.ChunkedArray) -> bool:
    return pc.all(pc.or_(pc.is_nan(column), pc.equal(pc.floor(column), column))).as_py() is not False

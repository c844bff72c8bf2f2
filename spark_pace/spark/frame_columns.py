"""Checks a user's streaming DataFrame: it has the attributes of a schema, in types that keep every value."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, DecimalType, NullType, StructType, TimestampNTZType

from spark_pace.core.expr import STRUCT, ExprType, array_element, decimal_digits
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.errors import ConfigError
from spark_pace.io.text.csv_header import meant_column

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KEPT = {
    "BIGINT": _INTEGERS,
    "BOOLEAN": ("boolean",),
    "DATE": ("date",),
    "DOUBLE": ("float", "double", *_INTEGERS),
    "STRING": ("string", "varchar", "char"),
    "TIMESTAMP": ("timestamp",),
}
UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


def require_events(df: DataFrame, schema: EventSchema) -> None:
    """Raise an error unless a DataFrame streams, and each attribute has a column of a type that fits.

    Raises:
        ConfigError: it does not stream, lacks a column, or has one whose values a cast could change.
    """
    if not df.isStreaming:
        do = "Make it by spark.readStream; for a table at rest take spark_pace.replay."
        raise ConfigError.of("detect", "must be given a streaming DataFrame", "one that does not stream", do)
    for field in schema.fields:
        kind = _found(df.schema, schema.path_of(field.name))
        if kind is None:
            _refuse_missing(df, field)
        else:
            _require_type(df, field, kind)


def _found(kind: DataType, path: tuple[str, ...]) -> DataType | None:
    """The type of a column, or of a part of it; names are compared as Spark does by default."""
    for name in path:
        parts = kind.fields if isinstance(kind, StructType) else []
        alike = [part.dataType for part in parts if part.name.lower() == name.lower()]
        if not alike:
            return None
        kind = alike[0]
    return kind


def _refuse_missing(df: DataFrame, field: Field) -> None:
    meant = meant_column(field.name, df.columns)
    do = f"{meant} Rename it." if meant else "Add it, or correct the schema."
    must, got = f"must be given a DataFrame with the column {field.name}", ", ".join(df.columns) or "none"
    raise ConfigError.of("detect", must, got, do)


def _require_type(df: DataFrame, field: Field, kind: DataType) -> None:
    got = f"{field.name} {kind.simpleString()}"
    must = f"must be given the column {field.name} as {field.type}, or as a type that it holds"
    if isinstance(kind, TimestampNTZType) and field.type == "TIMESTAMP":
        zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
        if zone not in UTC:
            do = "Times without a zone are read as UTC: set spark.sql.session.timeZone to UTC."
            raise ConfigError.of("detect", must, f"{got}, in a session in {zone}", do)
    elif not _keeps(field.type, kind):
        do = f'Cast it before: df.withColumn("{field.name}", …), or correct the schema.'
        raise ConfigError.of("detect", must, got, do)


def _keeps(declared: ExprType, kind: DataType) -> bool:
    """True if every value of a column keeps its meaning in the declared type."""
    if isinstance(kind, NullType):
        return True
    if declared == STRUCT:
        return isinstance(kind, StructType)
    if (element := array_element(declared)) is not None:
        return isinstance(kind, ArrayType) and _keeps(element, kind.elementType)
    if (digits := decimal_digits(declared)) is not None:
        # Spark itself refuses a value with too many digits before the point
        return isinstance(kind, DecimalType) and kind.scale <= digits[1]
    return re.sub(r"\(.*", "", kind.simpleString()) in _KEPT[declared]

"""Reads one file of a Delta table into typed columns, and adds the table's partition columns."""

from __future__ import annotations

import os

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, decimal_digits
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import ConfigError, EventError
from spark_pace.io.delta_log import Metadata, TableFile
from spark_pace.io.event_files import (
    EventsRead,
    columns_of,
    misfit,
    one_bad_record,
    parquet_rows,
    table_events,
)
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath

_WIDE = pa.decimal256(76, 38)


def read_table_file(
    folder: AnyPath, file: TableFile, schema: EventSchema, most_bad: int = MOST_BAD_RECORDS
) -> EventsRead:
    """Read the events in a file of a table. A damaged file counts as one bad record.

    Args:
        folder: the table's folder.
        file: the file.
        schema: the attributes; other columns are ignored, missing ones are null.
        most_bad: how many bad records get a row each.

    Raises:
        EventError: the file is gone, or a column has another type than in the schema.
    """
    source = source_of(file)
    try:
        stored = stored_rows(folder, file, columns_of(schema), _types(schema))
    except pa.ArrowInvalid as error:
        return one_bad_record(f"must be Parquet; got: {error}", schema, source)
    wrong = misfit(stored.slice(0, 0), schema)
    if wrong:
        do = "Declare the attribute as the table has it now."
        raise EventError(f"{folder}, version {file.version}: {wrong}. {do}")
    return table_events(stored, schema, source, most_bad)


def source_of(file: TableFile) -> str:
    """The source of the events in a file; as text it sorts in the order of commits."""
    return f"{file.version:020d}/{file.path}"


def require_columns(folder: AnyPath, metadata: Metadata, schema: EventSchema) -> None:
    """Check that a table has each attribute of the schema, in its type.

    Raises:
        ConfigError: it lacks one, or has one in another type.
    """
    columns = column_types(metadata).empty_table()
    there = ", ".join(columns.column_names)
    for name in columns_of(schema):
        if name not in columns.column_names:
            must = f"must name columns of {folder}"
            raise ConfigError.of("events.schema", must, f'"{name}"', f"It has: {there}.")
    if wrong := misfit(columns, schema):
        must, do = f"must declare attributes as {folder} has them", "Correct the type."
        raise ConfigError.of("events.schema", must, wrong, do)


def column_types(metadata: Metadata) -> pa.Schema:
    """The columns of a table with their Arrow types."""
    from deltalake import Schema

    return pa.schema(Schema.from_json(metadata.schema).to_arrow())


def stored_rows(
    folder: AnyPath, file: TableFile, columns: list[str], types: dict[str, pa.DataType]
) -> pa.Table:
    """Read the rows of a file, with the table's partition columns.

    Args:
        folder: the table's folder.
        file: the file.
        columns: the columns to read, where they exist.
        types: the types of partition columns; those without a type become text.

    Raises:
        EventError: the file is gone.
        pa.ArrowInvalid: it is no Parquet, or a value does not fit its type.
    """
    try:
        stored = parquet_rows(files.open_file(folder / file.path), columns)
    except OSError as error:
        if error.errno is None:  # a decoder's error, not the system's
            raise pa.ArrowInvalid(str(error)) from error
        must, got = "must have its files until they are read", f"{os.strerror(error.errno)}: {file.path}"
        do = "If VACUUM took it, restore it, or start a new checkpoint with a sink of its own."
        raise EventError(f"{folder}, version {file.version} — {must}; got {got}. {do}") from error
    for name, value in file.partition.items():
        if name not in stored.column_names and name in columns:
            scalar = _scalar(value, types.get(name, pa.string()))
            stored = stored.append_column(name, pa.repeat(scalar, stored.num_rows))
    return stored


def _types(schema: EventSchema) -> dict[str, pa.DataType]:
    """The types to read partition columns in, with room for each digit that a table can have."""
    return {
        field.name: _WIDE if decimal_digits(field.type) else ARROW_TYPES[field.type]
        for field in schema.fields
    }


def _scalar(value: str | None, kind: pa.DataType) -> pa.Scalar:
    """Convert a value of a partition column from its text in the log: empty means null, times are in UTC."""
    text = pa.scalar(value or None, pa.string())
    if pa.types.is_timestamp(kind) and value:
        zoned = text.cast(pa.timestamp("us", "UTC")) if value.endswith("Z") else text.cast(pa.timestamp("us"))
        return zoned.cast(kind)
    return text.cast(kind)

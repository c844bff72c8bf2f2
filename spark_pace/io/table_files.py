"""Reads one file of a Delta table to typed columns, with the table's partition columns, which it lacks."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import ConfigError, EventError
from spark_pace.io.delta_log import Metadata, TableFile
from spark_pace.io.files import EventsRead, columns_of, misfit, one_bad_record, table_events


def read_table_file(
    folder: str, file: TableFile, schema: EventSchema, most_bad: int = MOST_BAD_RECORDS
) -> EventsRead:
    """Read the events in a file of a table. A damaged file is one bad record.

    Args:
        folder: of the table.
        file: the file.
        schema: the attributes; other columns are ignored, missing ones are null.
        most_bad: so many bad records are told one by one.

    Raises:
        EventError: the file is gone, or a column has another type than the schema says.
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
    """The source of the events in a file; the text sorts as commits follow each other."""
    return f"{file.version:020d}/{file.path}"


def require_columns(folder: str, metadata: Metadata, schema: EventSchema) -> None:
    """Refuse a table that lacks an attribute of the schema, or has one in another type.

    Raises:
        ConfigError: it is so.
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
    """The columns of a table."""
    from deltalake import Schema

    return pa.schema(Schema.from_json(metadata.schema).to_arrow())


def stored_rows(
    folder: str,
    file: TableFile,
    columns: list[str] | None = None,
    types: dict[str, pa.DataType] | None = None,
) -> pa.Table:
    """The rows of a file, with those of the columns that it has or that partition the table.

    Args:
        folder: of the table.
        file: the file.
        columns: the columns; None: all.
        types: of columns that partition the table; those without one are text.

    Raises:
        EventError: the file is gone.
        pa.ArrowInvalid: it is no Parquet, or a value is none of its type.
    """
    path = os.path.join(folder, file.path)
    try:
        with pa.parquet.ParquetFile(path) as opened:
            names = [name for name in opened.schema_arrow.names if columns is None or name in columns]
            stored = opened.read(columns=names, use_threads=False)
    except OSError as error:
        if error.errno is None:  # a decoder's error, not the system's
            raise pa.ArrowInvalid(str(error)) from error
        must, got = "must have its files until they are read", f"{os.strerror(error.errno)}: {file.path}"
        do = "If VACUUM took it, restore it, or start a new checkpoint with a sink of its own."
        raise EventError(f"{folder}, version {file.version} — {must}; got {got}. {do}") from error
    for name, value in file.partition.items():
        if name not in stored.column_names and (columns is None or name in columns):
            kind = (types or {}).get(name, pa.string())
            stored = stored.append_column(name, pa.repeat(_scalar(value, kind), stored.num_rows))
    return stored


def _types(schema: EventSchema) -> dict[str, pa.DataType]:
    return {field.name: ARROW_TYPES[field.type] for field in schema.fields}


def _scalar(value: str | None, kind: pa.DataType) -> pa.Scalar:
    """A value of a partition column, as the log has it: empty text stands for null, times are in UTC."""
    text = pa.scalar(value or None, pa.string())
    if pa.types.is_timestamp(kind) and value:
        zoned = text.cast(pa.timestamp("us", "UTC")) if value.endswith("Z") else text.cast(pa.timestamp("us"))
        return zoned.cast(kind)
    return text.cast(kind)

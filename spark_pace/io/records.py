"""Reads records of a log such as Kafka into typed columns, from JSON, CSV or text and from other columns.

The values of many records are joined with newlines and parsed together, by the parsers for files. So newlines
inside a value must be replaced first. In JSON they become tabs, which mean the same between two tokens;
neither is allowed inside a JSON string.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.rule import EventSchema, Field, RecordForm
from spark_pace.core.tables import OFFSET, SOURCE, array
from spark_pace.io.bad_records import BAD_SCHEMA, BadRecords, Raw, timely
from spark_pace.io.event_files import EventsRead, all_read
from spark_pace.io.text.column_types import marked, typed
from spark_pace.io.text.lines import (
    CHUNK_BYTES,
    KEPT_BYTES,
    MOST_RECORD_BYTES,
    LineParser,
    ParsedLines,
    all_good,
    too_long,
)
from spark_pace.io.text.parsers import CsvParser, JsonParser, text_parser

_MS_US = 1_000


VALUE = "@value"  # binary; null if the record has no value


def read_records(records: pa.Table, format: str, schema: EventSchema) -> EventsRead:
    """Read the events of records. Those that are no events go to a table of their own, with the reason.

    Args:
        records: in any order: `VALUE`, `SOURCE` and `OFFSET`, and for each attribute that does not come from
            the value the column that it is taken from: binary (text), string, integer or timestamp.
        format: of the values: ``json``, ``csv`` (the attributes in the schema's order, without those that
            have a column of their own), ``text`` or ``columns`` (values are not read).
        schema: the attributes. Other members of a JSON object are ignored; missing ones are null.
    """
    rows, size = records.num_rows, records[VALUE].nbytes
    step = max(1, rows * CHUNK_BYTES // max(size, CHUNK_BYTES))
    parts = (records.slice(start, step) for start in range(0, max(rows, 1), step))
    read = all_read([_read(part, format, schema) for part in parts])
    return replace(read, ignored_rows=rows - read.read_rows)


def _read(records: pa.Table, format: str, schema: EventSchema) -> EventsRead:
    if format == "text" and schema.form.ignores_unmatched:
        matching = text_parser(schema).matching(array(records, VALUE))
        records = records.filter(pc.fill_null(matching, True))
    inside = tuple(field for field in schema.fields if field.name not in records.column_names)
    bad, values = BadRecords(None), array(records, VALUE)
    raw = partial(_raw, values)
    parsed = _parse(values, format, replace(schema, fields=inside), bad, raw)
    table = _with_columns(parsed, records, schema, bad, raw)
    events = timely(table.table, schema, table.rows, 0, raw, bad)
    places = records.select([SOURCE, OFFSET]).take(array(events, OFFSET))
    events = events.set_column(1, SOURCE, places[SOURCE]).add_column(2, OFFSET, places[OFFSET])
    return EventsRead(events, _bad_table(bad, records), records.num_rows)


def _raw(values: pa.Array, row: int) -> bytes:
    """The bytes of a value, cut if they are too long."""
    value: bytes = values[row].as_py() or b""
    return value if len(value) <= MOST_RECORD_BYTES else value[:KEPT_BYTES]


def _objection(values: pa.Array, row: int) -> str:
    """The reason for a value that was neither read nor refused: too long, empty, or several lines."""
    length = pc.binary_length(values[row]).as_py() or 0
    if length > MOST_RECORD_BYTES:
        return too_long(length)
    got = "several lines" if _raw(values, row).strip() else "nothing"
    return f"the value — must be one event; got {got}"


def _parse(values: pa.Array, format: str, schema: EventSchema, bad: BadRecords, raw: Raw) -> ParsedLines:
    """Read the attributes that are in the values; `rows` of the result are the numbers of records.

    Records whose values are no events go to `bad`.
    """
    if format == "columns" or not schema.fields:
        rows = np.arange(len(values), dtype=np.int64)
        return all_good(pa.table({"": rows}).select([]), rows)
    parser: LineParser
    if format == "csv":
        parser = CsvParser(schema, [field.name for field in schema.fields])
    else:
        parser = JsonParser(schema) if format == "json" else text_parser(schema)
    parsed = parser.read(_lines(values, format))
    bad.add(0, parsed.refused, parsed.reason, raw)
    unread = np.ones(len(values), np.bool_)
    unread[parsed.rows], unread[parsed.refused] = False, False
    rows = np.flatnonzero(unread)
    bad.add(0, rows, lambda index: _objection(values, int(rows[index])), raw)
    return parsed


def _lines(values: pa.Array, format: str) -> bytes:
    """The values as lines, each with the number of its value."""
    if values.nbytes > MOST_RECORD_BYTES:
        longer = pc.greater(pc.binary_length(values), MOST_RECORD_BYTES)
        values = pc.if_else(longer, pa.scalar(None, values.type), values)
    lines = _joined(values)
    return _joined(_as_lines(values, format)) if lines.count(b"\n") >= max(len(values), 1) else lines


def _joined(values: pa.Array) -> bytes:
    """The values joined by newlines."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), pc.fill_null(values, b""))
    return pc.binary_join(whole, b"\n")[0].as_py()  # type: ignore[no-any-return]


def _as_lines(values: pa.Array, format: str) -> pa.Array:
    """Remove newlines from values.

    A newline at the end of a value in CSV or text is cut off; a value with one inside becomes null.
    """
    if format == "json":
        return pc.replace_substring(values, "\n", "\t")
    ended = pc.replace_substring_regex(values, r"\r?\n\z", "")
    return pc.if_else(pc.match_substring(ended, "\n"), pa.scalar(None, values.type), ended)


def _with_columns(
    parsed: ParsedLines, records: pa.Table, schema: EventSchema, bad: BadRecords, raw: Raw
) -> ParsedLines:
    """Add the attributes that are columns of the records to `parsed`; all are in the schema's order.

    A record goes to `bad` if one of these columns does not fit its attribute.
    """
    table, rows = parsed.table, parsed.rows
    wrong: dict[int, str] = {}
    for field in schema.fields:
        if field.name in records.column_names:
            cast = partial(_cast, field=field, form=schema.form)
            column, reasons = marked(records[field.name], field, cast)
            table, wrong = table.append_column(field.name, column.take(pa.array(rows))), reasons | wrong
    if wrong:
        good = ~np.isin(rows, list(wrong))
        refused = rows[~good]
        bad.add(0, refused, lambda index: wrong[int(refused[index])], raw)
        table, rows = table.filter(pa.array(good)), rows[good]
    return all_good(table.select([field.name for field in schema.fields]), rows)


def _cast(column: pa.ChunkedArray, field: Field, form: RecordForm) -> pa.ChunkedArray:
    if pa.types.is_binary(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type) and field.type != "STRING":
        return typed(column, field.type, form)
    if pa.types.is_timestamp(column.type) and field.type == "BIGINT":
        column = pc.divide(column.cast(pa.int64()), _MS_US)  # Kafka counts milliseconds
    return column.cast(ARROW_TYPES[field.type])


def _bad_table(bad: BadRecords, records: pa.Table) -> pa.Table:
    told = bad.table("")
    places = records.select([SOURCE, OFFSET]).take(array(told, "offset"))
    columns = [places[SOURCE].cast(pa.string()), places[OFFSET], told["reason"], told["raw"]]
    return pa.table(columns, schema=BAD_SCHEMA)

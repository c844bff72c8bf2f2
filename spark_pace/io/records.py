"""Reads records of a log such as Kafka into typed columns, from JSON, CSV or text and from other columns.

The values of many records are joined with newlines and parsed together, by the parsers for files. So newlines
inside a value must be replaced first. In JSON they become tabs, which mean the same between two tokens;
neither is allowed inside a JSON string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.rule import EventSchema, Field, RecordForm
from spark_pace.io.bad_records import BAD_SCHEMA, BadRecords, timely
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


@dataclass(frozen=True)
class Records:
    """Some records; each column has one entry for each record.

    Attributes:
        values: binary; null if the record has no value.
        sources: dictionary<int32, string>: the source of each record.
        offsets: int64: the offset of each record in its source.
        columns: for each attribute that does not come from the value, the column of the record that it is
            taken from: binary (text), string, integer or timestamp.
    """

    values: pa.Array
    sources: pa.DictionaryArray
    offsets: pa.Array
    columns: Mapping[str, pa.Array]

    def taken(self, take: Callable[[pa.Array], pa.Array]) -> Records:
        """Some of the records; `take` takes their entries of a column."""
        columns = {name: take(column) for name, column in self.columns.items()}
        return Records(take(self.values), take(self.sources), take(self.offsets), columns)


def read_records(records: Records, format: str, schema: EventSchema) -> EventsRead:
    """Read the events of records. Those that are no events go to a table of their own, with the reason.

    Args:
        records: in any order.
        format: of the values: ``json``, ``csv`` (the attributes in the schema's order, without those in
            `records.columns`), ``text`` or ``columns`` (values are not read).
        schema: the attributes. Other members of a JSON object are ignored; missing ones are null.
    """
    rows, size = len(records.values), records.values.nbytes
    step = max(1, rows * CHUNK_BYTES // max(size, CHUNK_BYTES))
    reads = [
        _read(records.taken(methodcaller("slice", start, step)), format, schema)
        for start in range(0, max(rows, 1), step)
    ]
    read = all_read(reads)
    return replace(read, ignored_rows=rows - read.read_rows)


def _read(records: Records, format: str, schema: EventSchema) -> EventsRead:
    if format == "text" and schema.form.ignores_unmatched:
        matching = pc.fill_null(text_parser(schema).matching(records.values), True)
        records = records.taken(methodcaller("filter", matching))
    inside = tuple(field for field in schema.fields if field.name not in records.columns)
    bad = BadRecords(None)
    values = _Values(records.values)
    parsed = _parse(records.values, format, replace(schema, fields=inside), bad, values)
    table = _with_columns(parsed, records, schema, bad, values)
    events = timely(table.table, schema, table.rows, 0, values, bad)
    index = events.column("@offset").combine_chunks()
    at = events.column_names.index("@offset")
    events = events.set_column(at, "@source", records.sources.take(index)).add_column(
        at + 1, "@offset", records.offsets.take(index)
    )
    return EventsRead(events, _bad_table(bad, records), len(records.values))


class _Values:
    """The bytes of values by the number of the record, cut if they are too long."""

    def __init__(self, values: pa.Array) -> None:
        self.values = values

    def __getitem__(self, row: int) -> bytes:
        value: bytes = self.values[row].as_py() or b""
        return value if len(value) <= MOST_RECORD_BYTES else value[:KEPT_BYTES]

    def objection(self, row: int) -> str:
        """The reason for a value that was neither read nor refused: too long, empty, or several lines."""
        length = pc.binary_length(self.values[row]).as_py() or 0
        if length > MOST_RECORD_BYTES:
            return too_long(length)
        got = "several lines" if self[row].strip() else "nothing"
        return f"the value — must be one event; got {got}"


def _parse(values: pa.Array, format: str, schema: EventSchema, bad: BadRecords, raws: _Values) -> ParsedLines:
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
    bad.add(0, parsed.refused, parsed.reason, raws)
    unread = np.ones(len(values), np.bool_)
    unread[parsed.rows], unread[parsed.refused] = False, False
    rows = np.flatnonzero(unread)
    bad.add(0, rows, lambda index: raws.objection(int(rows[index])), raws)
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
    parsed: ParsedLines, records: Records, schema: EventSchema, bad: BadRecords, raws: _Values
) -> ParsedLines:
    """Add the attributes that are columns of the records to `parsed`; all are in the schema's order.

    A record goes to `bad` if one of these columns does not fit its attribute.
    """
    table, rows = parsed.table, parsed.rows
    wrong: dict[int, str] = {}
    for field in schema.fields:
        if field.name in records.columns:
            cast = partial(_cast, field=field, form=schema.form)
            column, reasons = marked(pa.chunked_array([records.columns[field.name]]), field, cast)
            table, wrong = table.append_column(field.name, column.take(pa.array(rows))), reasons | wrong
    if wrong:
        good = ~np.isin(rows, list(wrong))
        refused = rows[~good]
        bad.add(0, refused, lambda index: wrong[int(refused[index])], raws)
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


def _bad_table(bad: BadRecords, records: Records) -> pa.Table:
    told = bad.table("")
    rows = told["offset"].combine_chunks()
    sources = records.sources.take(rows).cast(pa.string())
    return pa.table([sources, records.offsets.take(rows), told["reason"], told["raw"]], schema=BAD_SCHEMA)

"""Reads files of events into typed columns: JSON lines, CSV with a header, lines of text, Parquet.

Text is parsed in chunks of whole lines. A chunk that fails is cut up until the bad lines stand alone, so a
bad record spoils no other one, and becomes one row of `EventsRead.bad`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from spark_pace.core.expr import ARROW_TYPES, STRUCT
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.core.plan.structs import json_rows, nested
from spark_pace.errors import EventError
from spark_pace.io.bad_records import BadRecords, Lines
from spark_pace.io.event_times import END_US, FAR_US, UNIT_US, timely, told_of_new_year, with_places
from spark_pace.io.text.column_types import inner, not_utf8, typed, with_elements
from spark_pace.io.text.csv_header import lacking_in, look_at_header, no_event_time
from spark_pace.io.text.line_bounds import parts_of
from spark_pace.io.text.lines import KEPT_BYTES, LineParser, TooLong, chunks, parse_lines, too_long
from spark_pace.io.text.name_endings import ARCHIVES
from spark_pace.io.text.parsers import CsvParser, JsonParser, header_names
from spark_pace.io.text.regex_lines import text_parser

LINE_PARSERS: dict[str, Callable[[EventSchema], LineParser]] = {"json": JsonParser, "text": text_parser}
WHOLE_FILE = "the file — "  # begins the reason if a whole file is one bad record
_BOM = b"\xef\xbb\xbf"
_MOST_CELLS = 1 << 24  # lines parsed together, times attributes


@dataclass(frozen=True)
class EventsRead:
    """The events and bad records of one file.

    Attributes:
        events: `@time` int64 (microseconds since 1970, UTC), `@source` dictionary<int32, string>, `@offset`
            int64 (row number in the file, from 0; a header is not counted) and the schema's attributes.
        bad: a table of `BAD_SCHEMA`: a row for each of the file's first bad records, one for all others.
        read_rows: the number of all records, good and bad.
        lacking: for each attribute that the header of a CSV file lacks, the message about it; and for the
            event time, that times without a year go over New Year.
        ignored_rows: the number of lines that are no records, because they do not match, see
            `RecordForm.ignores_unmatched`.
    """

    events: pa.Table
    bad: pa.Table
    read_rows: int
    lacking: Mapping[str, str] = field(default_factory=dict)
    ignored_rows: int = 0

    @property
    def bad_rows(self) -> int:
        """The number of records that are no events."""
        return self.read_rows - int(self.events.num_rows)


def read_events(
    path: str, format: str, schema: EventSchema, source: str, most_bad: int = MOST_BAD_RECORDS
) -> EventsRead:
    """Read a file of events. Records that are no events go to a table of their own, with the reason.

    A damaged archive or Parquet file is one bad record: none of its events counts.

    Args:
        path: a file; text may be compressed (`ARCHIVES`).
        format: ``json``, ``csv``, ``text`` or ``parquet``.
        schema: the attributes; others are ignored, missing ones are null. If its times lack the year, it is
            taken from the time of the file's last change, see `RecordForm.newest_us`.
        source: the source of the events, usually the file's path below the source's folder.
        most_bad: how many bad records get a row each.

    Raises:
        EventError: the file is not there, or the system cannot read it.
    """
    bad = BadRecords(most_bad)
    header: list[str] = []
    try:
        if schema.form.lacks_year:
            newest_us = min(os.stat(path).st_mtime_ns // 1000, END_US)
            schema = replace(schema, form=replace(schema.form, newest_us=newest_us))
        if format != "parquet" and path.endswith(ARCHIVES) and not os.path.getsize(path):
            return one_bad_record("must be undamaged; got: an archive of 0 bytes", schema, source)
        read = _read_parquet if format == "parquet" else _read_text
        parts = list(read(path, format, schema, bad, header))
        if format == "csv" and not any(part.num_rows for part in parts):
            look_at_header(header, schema, bad)
    except OSError as error:
        if error.errno is None:  # an error of the decoder: what was read before it must not count
            return one_bad_record(f"must be undamaged; got: {error}", schema, source)
        packed = ", compressed," if path.endswith(ARCHIVES) else ""
        empty = f"an empty {format} file of that name{packed} in its place"
        do = f"Put it back; if it is gone for good, {empty} lets the job go on."
        raise EventError(f"{path} — must be a readable {format} file; got: {error}. {do}") from error
    events_read = _events_read(parts, bad, schema, source)
    told = {} if format == "parquet" else told_of_new_year(events_read.events, schema, source)
    return replace(events_read, lacking=told | (lacking_in(header, schema, source) if header else {}))


def read_source_file(
    root: str, name: str, format: str, schema: EventSchema, most_bad: int = MOST_BAD_RECORDS
) -> EventsRead:
    """Read one file of a source.

    A device, a pipe, or a link that leads out of the source's folder counts as one bad record and is not
    opened.

    Args:
        root: the source's folder, or its only file.
        name: the file, relative to `root`.
        format: as in `read_events`.
        schema: as in `read_events`.
        most_bad: as in `read_events`.

    Raises:
        EventError: the file is not there, or the system cannot read it.
    """
    path = os.path.join(root, name) if os.path.isdir(root) else root
    source = source_name(name)
    wrong = None
    if source != name:
        wrong = "must have a name in UTF-8; got other bytes"
    elif os.path.exists(path) and not os.path.isfile(path):
        wrong = "must be a regular file; got a device, a pipe or a socket"
    elif path != root and not os.path.realpath(path).startswith(os.path.join(os.path.realpath(root), "")):
        wrong = "must lie in the source's folder; got a link out of it"
    if wrong:
        return one_bad_record(wrong, schema, source)
    return read_events(path, format, schema, source, most_bad)


def source_name(name: str) -> str:
    """The source of events in a file: its name, with escapes for bytes that are no UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()


def table_events(
    table: pa.Table, schema: EventSchema, source: str, most_bad: int = MOST_BAD_RECORDS
) -> EventsRead:
    """Take the rows of a table as events of one source; `@offset` is the row's number.

    The first `most_bad` rows that are no events get a row each in `EventsRead.bad`.
    """
    bad = BadRecords(most_bad)
    return _events_read(list(_stored_events(table, schema, bad)), bad, schema, source)


def one_bad_record(wrong: str, schema: EventSchema, source: str) -> EventsRead:
    """The result for a file that counts as one bad record, with the reason `wrong`."""
    bad = BadRecords()
    bad.add_one(0, WHOLE_FILE + wrong, b"")
    return _events_read([], bad, schema, source)


def _events_read(parts: list[pa.Table], bad: BadRecords, schema: EventSchema, source: str) -> EventsRead:
    none = np.empty(0, np.int64)
    events = pa.concat_tables([*parts, with_places(no_attributes(schema), none, none)])
    names = pa.DictionaryArray.from_arrays(
        np.zeros(events.num_rows, np.int32), pa.array([source], pa.string())
    )
    events = events.add_column(1, "@source", names)
    table = bad.table(source)
    return EventsRead(events, table, events.num_rows + bad.count, ignored_rows=bad.ignored)


def _read_text(
    path: str, format: str, schema: EventSchema, bad: BadRecords, columns: list[str]
) -> Iterator[pa.Table]:
    """The events of a file of text; `columns` gets the names in the header of a CSV file that has events."""
    parser = LINE_PARSERS[format](schema) if format in LINE_PARSERS else None
    first = 0
    with pa.input_stream(path, compression="detect") as stream:
        for start, chunk in enumerate(chunks(stream)):
            if parser is None:
                start_of_file = chunk.raw if isinstance(chunk, TooLong) else chunk
                header, more, lines = start_of_file.removeprefix(_BOM).partition(b"\n")
                names = header_names(header)
                twice = [field.name for field in schema.fields if names.count(field.name) > 1]
                if twice:
                    bad.add_one(0, f"{WHOLE_FILE}must have one column {twice[0]}; got several", b"")
                    return
                if schema.event_time not in names:
                    bad.add_one(0, WHOLE_FILE + no_event_time(schema.event_time, names), header[:KEPT_BYTES])
                    return
                columns += names
                parser = CsvParser(schema, names)
                if not more:
                    continue
            elif isinstance(chunk, TooLong):
                bad.add_one(first, too_long(chunk.length), chunk.raw)
                first += 1
                continue
            else:
                lines = chunk.removeprefix(_BOM) if start == 0 else chunk
            for part in parts_of(lines, max(1, _MOST_CELLS // len(schema.fields))):
                texts = Lines(part)
                if part.isspace():
                    first += texts.count
                    continue
                parsed = parse_lines(part, parser, bad.most)
                bad.ignored += parsed.ignored
                bad.add(first, parsed.refused.rows, parsed.refused.reasons.__getitem__, texts)
                yield timely(parsed.table, schema, parsed.rows, first, texts, bad)
                bad.settle()
                first += texts.count


class _Rows:
    """The rows of a table as JSON, for bad records that were not text."""

    def __init__(self, table: pa.Table, schema: EventSchema) -> None:
        self.table, self.schema = table, schema

    def __getitem__(self, row: int) -> bytes:
        return json_rows(nested(self.table.slice(row, 1), self.schema))[0].encode()


def _read_parquet(
    path: str, format: str, schema: EventSchema, bad: BadRecords, _: list[str]
) -> Iterator[pa.Table]:
    """Read the events of a Parquet file. A column of a wrong type makes the whole file one bad record."""
    try:
        with pa.parquet.ParquetFile(path) as file:
            there = set(file.schema_arrow.names)
            names = [name for name in columns_of(schema) if name in there]
            stored = file.read(columns=names, use_threads=False)
    except pa.ArrowInvalid as error:
        bad.add_one(0, f"{WHOLE_FILE}must be Parquet; got: {error}", b"")
        return
    yield from _stored_events(stored, schema, bad)


def columns_of(schema: EventSchema) -> list[str]:
    """The names of the columns of a table that hold the schema's attributes, STRUCTs once."""
    return list(dict.fromkeys(schema.path_of(field.name)[0] for field in schema.fields))


def misfit(stored: pa.Table, schema: EventSchema) -> str | None:
    """The reason why a table's columns do not fit the schema's attributes; None if they do."""
    try:
        fitted(stored, schema)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def fitted(stored: pa.Table, schema: EventSchema) -> pa.Table:
    """Take the schema's attributes from a table, in their types; missing ones are null.

    Raises:
        pa.ArrowInvalid: a column has another type.
    """
    columns = []
    for attribute in schema.fields:
        try:
            columns.append(fitted_column(inner(stored, schema.path_of(attribute.name)), attribute))
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"{attribute.name} — must be {attribute.type}; got: {error}") from error
    return pa.table(columns, schema=no_attributes(schema).schema)


def fitted_column(column: pa.ChunkedArray, attribute: Field) -> pa.ChunkedArray:
    """A stored column in the type of its attribute.

    Raises:
        pa.ArrowInvalid: it has another type, or a value that would change.
    """
    if attribute.type == STRUCT:
        return typed(column, STRUCT)
    return _typed(column, ARROW_TYPES[attribute.type])


def _stored_events(stored: pa.Table, schema: EventSchema, bad: BadRecords) -> Iterator[pa.Table]:
    try:
        table = fitted(stored, schema)
    except pa.ArrowInvalid as error:
        bad.add_one(0, str(error), b"")
        return
    rows, raws = np.arange(table.num_rows, dtype=np.int64), _Rows(table, schema)
    wrong = not_utf8(table)
    if wrong:
        refused = np.array(sorted(wrong))
        reason = "{} — must be UTF-8; got other bytes".format
        bad.add(0, refused, lambda index: reason(wrong[int(refused[index])]), raws)
        good = ~np.isin(rows, refused)
        table, rows = table.filter(pa.array(good)), rows[good]
    yield timely(table, schema, rows, 0, raws, bad)


def _typed(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert a stored column to the declared type; floats may lose precision, times what is below 1 µs.

    Raises:
        pa.ArrowInvalid: more would be lost.
    """
    is_, stored = pa.types, column.type
    if is_.is_list(target) and not is_.is_null(stored):
        return with_elements(column, lambda elements: _typed(elements, target.value_type), target)
    if is_.is_dictionary(stored):
        if is_.is_string_view(stored.value_type):  # of polars; Arrow does not decode it
            column = column.cast(pa.dictionary(stored.index_type, pa.string()))
        return _typed(column.cast(column.type.value_type), target)
    is_number = is_.is_integer(stored) or is_.is_floating(stored) or is_.is_decimal(stored)
    kept = stored == target or is_.is_null(stored)
    kept |= is_.is_integer(stored) and is_.is_integer(target)
    if is_.is_timestamp(stored) and is_.is_timestamp(target):
        return _microseconds(column)
    kept |= is_number and is_.is_floating(target)
    is_text = is_.is_large_string(stored) or is_.is_string_view(stored)
    kept |= is_text and is_.is_string(target)
    kept |= is_.is_decimal(target) and (is_.is_integer(stored) or is_.is_decimal(stored))
    if not kept:
        raise pa.ArrowInvalid(f"a column of {stored}")
    return column.cast(target, safe=is_.is_integer(target) or is_.is_decimal(target))


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert times of any unit to microseconds; times too large for these stay far out of range."""
    unit, target = column.type.unit, pa.timestamp("us")
    if unit == "ns":
        # without its zone, for with it hours that a clock shows twice would be refused
        return pc.floor_temporal(column.cast(pa.timestamp("ns")), unit="microsecond").cast(target, safe=False)
    if unit == "us":
        return column.cast(target)
    most = FAR_US // UNIT_US[unit]
    counts = pc.max_element_wise(column.cast(pa.int64()), -most, skip_nulls=False)
    counts = pc.min_element_wise(counts, most, skip_nulls=False)
    return counts.cast(pa.timestamp(unit)).cast(target)


def no_attributes(schema: EventSchema) -> pa.Table:
    """An empty table with the schema's attributes."""
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields]).empty_table()

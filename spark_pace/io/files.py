"""Reads files of events into typed columns: JSON lines, CSV with a header, Parquet.

pyarrow parses text in chunks of whole lines. A chunk that fails is cut up until the bad lines stand alone: so
a bad record costs no other, and becomes one row of `EventsRead.bad`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from spark_pace.core.expr import ARROW_TYPES, STRUCT
from spark_pace.core.plan.nested import nested
from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import EventError, one_line
from spark_pace.io.text.lines import LineParser, TooLong, chunks, parse_lines, too_long
from spark_pace.io.text.parsers import CsvParser, JsonParser, header_names
from spark_pace.io.text.typed import inner, typed, with_elements

EARLIEST_US = -2_208_988_800_000_000  # 1900-01-01
END_US = 7_258_118_400_000_000  # 2200-01-01: no event has a time from here on
BAD_SCHEMA = pa.schema(
    [("source", pa.string()), ("offset", pa.int64()), ("reason", pa.string()), ("raw", pa.binary())]
)
UNIT_US = {None: 1, "us": 1, "ms": 1_000, "s": 1_000_000}
WHOLE_FILE = "the file — "  # the reasons of a file that is one bad record as a whole begin so
_NEWLINE = ord("\n")
_BOM = b"\xef\xbb\xbf"

Bad = tuple[int, str, bytes]  # offset, reason, raw


@dataclass(frozen=True)
class EventsRead:
    """What one file holds.

    Attributes:
        events: `@time` int64 (microseconds since 1970, UTC), `@source` dictionary<int32, string>, `@offset`
            int64 (row number in the file, from 0; a header is not counted) and the schema's attributes.
        bad: the records that are no events, with the columns of `BAD_SCHEMA`.
        read_rows: the number of records of both.
    """

    events: pa.Table
    bad: pa.Table
    read_rows: int


def read_events(path: str, format: str, schema: EventSchema, source: str) -> EventsRead:
    """Read a file of events. A record that cannot be an event is kept apart, with the reason.

    A damaged archive or Parquet file is one bad record: none of its events counts.

    Args:
        path: a file; text may be compressed (``.gz``, ``.bz2``, ``.zst``).
        format: ``json``, ``csv`` or ``parquet``.
        schema: the attributes; others are ignored, missing ones are null.
        source: the name of the file for its events, by custom the path below the source's root.

    Raises:
        EventError: the file is not there, or the system cannot read it.
    """
    bad: list[Bad] = []
    try:
        read = _read_parquet if format == "parquet" else _read_text
        parts = list(read(path, format, schema, bad))
    except OSError as error:
        if error.errno is None:  # a decoder's error, not the system's: what it gave before must not count
            return _one_bad_record(f"must be undamaged; got: {error}", schema, source)
        empty = f"an empty {format} file of that name in its place"
        do = f"Put it back; if it is gone for good, {empty} lets the job go on."
        raise EventError(f"{path} — must be a readable {format} file; got: {error}. {do}") from error
    return _events_read(parts, bad, schema, source)


def read_source_file(root: str, name: str, format: str, schema: EventSchema) -> EventsRead:
    """Read one file of a source.

    A device, a pipe, or a link out of the source's folder is one bad record, and is not opened.

    Args:
        root: the source's folder, or its only file.
        name: the file, relative to `root`.
        format: as in `read_events`.
        schema: as in `read_events`.

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
    return _one_bad_record(wrong, schema, source) if wrong else read_events(path, format, schema, source)


def source_name(name: str) -> str:
    """The source of the events in a file of this name."""
    return name.encode("utf-8", "backslashreplace").decode()


def table_events(table: pa.Table, schema: EventSchema, source: str) -> EventsRead:
    """The rows of a table as events of the source `source`; `@offset` is the number of the row."""
    bad: list[Bad] = []
    return _events_read(list(_stored_events(table, schema, bad)), bad, schema, source)


def _one_bad_record(wrong: str, schema: EventSchema, source: str) -> EventsRead:
    return _events_read([], [(0, WHOLE_FILE + wrong, b"")], schema, source)


def _events_read(parts: list[pa.Table], bad: list[Bad], schema: EventSchema, source: str) -> EventsRead:
    events = pa.concat_tables(
        [*parts, _events(no_attributes(schema), np.empty(0, np.int64), np.empty(0, np.int64))]
    )
    names = pa.DictionaryArray.from_arrays(
        np.zeros(events.num_rows, np.int32), pa.array([source], pa.string())
    )
    events = events.add_column(1, "@source", names)
    offsets, reasons, raws = zip(*sorted(bad), strict=True) if bad else ((), (), ())
    wrong = pa.table(
        [[source] * len(bad), offsets, [one_line(reason) for reason in reasons], raws], schema=BAD_SCHEMA
    )
    return EventsRead(events, wrong, events.num_rows + len(bad))


def _read_text(path: str, format: str, schema: EventSchema, bad: list[Bad]) -> Iterator[pa.Table]:
    parser: LineParser | None = JsonParser(schema) if format == "json" else None
    first = 0
    with pa.input_stream(path, compression="detect") as stream:
        for start, chunk in enumerate(chunks(stream)):
            if parser is None:
                start_of_file = chunk.raw if isinstance(chunk, TooLong) else chunk
                header, more, lines = start_of_file.removeprefix(_BOM).partition(b"\n")
                parser = CsvParser(schema, header_names(header))
                if not more:
                    continue
            elif isinstance(chunk, TooLong):
                bad.append((first, too_long(chunk.length), chunk.raw))
                first += 1
                continue
            else:
                lines = chunk.removeprefix(_BOM) if start == 0 else chunk
            parsed = parse_lines(lines, parser)
            texts = _Lines(lines)
            bad.extend((first + row, reason, texts[row]) for row, reason in parsed.refused)
            yield timely(parsed.table, schema, parsed.rows, first, texts, bad)
            # five times as fast as `lines.count`
            first += int(np.count_nonzero(np.frombuffer(lines, np.uint8) == _NEWLINE)) + 1


class Raws(Protocol):
    """Gives the bytes of records by their number."""

    def __getitem__(self, row: int) -> bytes:
        """The bytes of record `row`."""


class _Lines:
    """The lines of a chunk. Splits it only if a line is asked for."""

    def __init__(self, chunk: bytes) -> None:
        self.chunk = chunk
        self.lines: list[bytes] | None = None

    def __getitem__(self, row: int) -> bytes:
        if self.lines is None:
            self.lines = self.chunk.split(b"\n")
        return self.lines[row]


class _Rows:
    """The rows of a table as JSON, for records that are not text."""

    def __init__(self, table: pa.Table, schema: EventSchema) -> None:
        self.table, self.schema = table, schema

    def __getitem__(self, row: int) -> bytes:
        (shown,) = nested(self.table.slice(row, 1), self.schema).to_pylist()
        return json.dumps(shown, default=str).encode()


def _read_parquet(path: str, format: str, schema: EventSchema, bad: list[Bad]) -> Iterator[pa.Table]:
    """The events of a file. A column with a wrong type makes the whole file one bad record."""
    try:
        with pa.parquet.ParquetFile(path) as file:
            there = set(file.schema_arrow.names)
            first = dict.fromkeys(schema.path_of(field.name)[0] for field in schema.fields)
            names = [name for name in first if name in there]
            stored = file.read(columns=names, use_threads=False)
    except pa.ArrowInvalid as error:
        bad.append((0, f"{WHOLE_FILE}must be Parquet; got: {error}", b""))
        return
    yield from _stored_events(stored, schema, bad)


def _stored_events(stored: pa.Table, schema: EventSchema, bad: list[Bad]) -> Iterator[pa.Table]:
    columns = []
    for field in schema.fields:
        try:
            column = inner(stored, schema.path_of(field.name))
            columns.append(
                typed(column, STRUCT) if field.type == STRUCT else _typed(column, ARROW_TYPES[field.type])
            )
        except pa.ArrowInvalid as error:
            bad.append((0, f"{field.name} — must be {field.type}; got: {error}", b""))
            return
    table = pa.table(columns, schema=no_attributes(schema).schema)
    yield timely(table, schema, np.arange(table.num_rows, dtype=np.int64), 0, _Rows(table, schema), bad)


def _typed(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """A stored column in the declared type. Floats may lose precision, and times all below a microsecond.

    Raises:
        pa.ArrowInvalid: more would be lost.
    """
    is_, stored = pa.types, column.type
    if is_.is_list(target) and not is_.is_null(stored):
        return with_elements(column, lambda elements: _typed(elements, target.value_type), target)
    if is_.is_dictionary(stored):
        return _typed(column.cast(stored.value_type), target)
    is_number = is_.is_integer(stored) or is_.is_floating(stored) or is_.is_decimal(stored)
    kept = stored == target or is_.is_null(stored)
    kept |= is_.is_integer(stored) and is_.is_integer(target)
    kept |= is_.is_timestamp(stored) and is_.is_timestamp(target)
    kept |= is_number and is_.is_floating(target)
    kept |= is_.is_large_string(stored) and is_.is_string(target)
    kept |= is_.is_decimal(target) and (is_.is_integer(stored) or is_.is_decimal(stored))
    if not kept:
        raise pa.ArrowInvalid(f"a column of {stored}")
    return column.cast(target, safe=is_.is_integer(target) or is_.is_decimal(target))


def timely(
    table: pa.Table, schema: EventSchema, rows: npt.NDArray[np.int64], first: int, raws: Raws, bad: list[Bad]
) -> pa.Table:
    """The events of a parsed chunk with `@time` and `@offset`; rows without a possible time go to `bad`.

    Args:
        table: the schema's attributes.
        schema: the attributes.
        rows: int64; for each row of `table` the number of its record in the chunk.
        first: the number of the chunk's first record.
        raws: the records' bytes by their number in the chunk.
        bad: takes (offset, reason, bytes) of each record that is no event.
    """
    unit = UNIT_US[schema.time_unit]
    column = table.column(schema.event_time)
    counts = pc.cast(column, pa.int64())
    inside = pc.and_(pc.greater_equal(counts, EARLIEST_US // unit), pc.less(counts, END_US // unit))
    good = pc.fill_null(inside, False).to_numpy()
    if not good.all():
        for row in np.flatnonzero(~good).tolist():
            value, record = column[row].as_py(), int(rows[row])
            must, got = "must be an event time from 1900 to 2199", "nothing" if value is None else value
            bad.append((first + record, f"{schema.event_time} — {must}; got {got}", raws[record]))
        table, rows, counts = table.filter(pa.array(good)), rows[good], counts.filter(pa.array(good))
    return _events(table, counts.to_numpy() * unit, first + rows)


def _events(table: pa.Table, times_us: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> pa.Table:
    return table.add_column(0, "@time", pa.array(times_us)).add_column(1, "@offset", pa.array(offsets))


def no_attributes(schema: EventSchema) -> pa.Table:
    """An empty table with the schema's attributes."""
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields]).empty_table()

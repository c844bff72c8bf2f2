"""Reads files of events into typed columns: JSON lines, CSV with a header, lines of text, Parquet.

Text is parsed in chunks of whole lines. A chunk that fails is cut up until the bad lines stand alone, so a
bad record spoils no other one, and becomes one row of `EventsRead.bad`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.core.plan.structs import json_rows, nested, shown_values
from spark_pace.core.tables import Bools
from spark_pace.errors import EventError, one_line
from spark_pace.io.bad_records import WHOLE_FILE, BadRecords, Lines
from spark_pace.io.event_times import END_US, timely, with_places
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import AnyFile
from spark_pace.io.files.local import Objection
from spark_pace.io.text.column_types import fitted_column, inner, not_utf8, too_large_or_exact
from spark_pace.io.text.lines import KEPT_BYTES, LineParser, TooLong, chunks, parse_lines, parts_of, too_long
from spark_pace.io.text.parsers import (
    CsvParser,
    JsonParser,
    header_names,
    lacking_in,
    look_at_header,
    no_event_time,
)
from spark_pace.io.text.regex_lines import text_parser
from spark_pace.io.text.unread_lines import ARCHIVES, CODECS, position, told_of_new_year

LINE_PARSERS: dict[str, Callable[[EventSchema], LineParser]] = {"json": JsonParser, "text": text_parser}
_BOM = b"\xef\xbb\xbf"
_MOST_CHARACTERS = 160  # of a bad record in a line beside others
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
    """Read a file of this machine, wherever it lies; the rest is as in `read_source_file`."""
    return _read_file(Path(path), os.path.basename(path), source, format, schema, most_bad)


def read_source_file(
    place: AnyPath, name: str, format: str, schema: EventSchema, most_bad: int = MOST_BAD_RECORDS
) -> EventsRead:
    """Read a file of events. Records that are no events go to a table of their own, with the reason.

    A damaged archive or Parquet file is one bad record: none of its events counts. So is a file that must not
    be opened, see `files.open_in`.

    Args:
        place: the source.
        name: the file's; text may be compressed (`ARCHIVES`). It is the source of the events.
        format: ``json``, ``csv``, ``text`` or ``parquet``.
        schema: the attributes; others are ignored, missing ones are null. If its times lack the year, it is
            taken from the time of the file's last change, see `RecordForm.newest_us`.
        most_bad: how many bad records get a row each.

    Raises:
        EventError: the file is not there, or the system cannot read it.
        SetupError: the store in which it is does not answer.
    """
    source = source_name(name)
    if source != name:
        return one_bad_record("must have a name in UTF-8; got other bytes", schema, source)
    return _read_file(place, name, source, format, schema, most_bad)


def _read_file(
    place: AnyPath, name: str, source: str, format: str, schema: EventSchema, most_bad: int
) -> EventsRead:
    bad = BadRecords(most_bad)
    header: list[str] = []
    try:
        file = files.open_in(place, name)
        if schema.form.lacks_year:
            newest_us = min(file.changed_ns // 1000, END_US)
            schema = replace(schema, form=replace(schema.form, newest_us=newest_us))
        packed = format != "parquet" and name.endswith(ARCHIVES)
        if packed and not file.size:
            return one_bad_record("must be undamaged; got: an archive of 0 bytes", schema, source)
        if format == "parquet":
            parts = list(_read_parquet(file, schema, bad))
        else:
            codec = CODECS.get(Path(name).suffix)
            with pa.input_stream(file.content, compression=codec) as stream:
                parts = list(_read_text(stream, format, schema, bad, header))
        if format == "csv" and not any(part.num_rows for part in parts):
            look_at_header(header, schema, bad)
    except Objection as wrong:
        return one_bad_record(str(wrong), schema, source)
    except OSError as error:
        if error.errno is None:  # an error of the decoder: what was read before it must not count
            return one_bad_record(f"must be undamaged; got: {error}", schema, source)
        raise _unreadable(str(files.in_source(place, name)), format, error) from error
    events_read = _events_read(parts, bad, schema, source)
    told = {} if format == "parquet" else told_of_new_year(events_read.events, schema, source)
    return replace(events_read, lacking=told | (lacking_in(header, schema, source) if header else {}))


def _unreadable(shown: str, format: str, error: OSError) -> EventError:
    packed = ", compressed," if shown.endswith(ARCHIVES) else ""
    empty = f"an empty {format} file of that name{packed} in its place"
    do = f"Put it back; if it is gone for good, {empty} lets the job go on."
    return EventError(f"{shown} — must be a readable {format} file; got: {error}. {do}")


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
    stream: pa.NativeFile, format: str, schema: EventSchema, bad: BadRecords, columns: list[str]
) -> Iterator[pa.Table]:
    """The events of text; `columns` gets the names in the header of a CSV file that has events."""
    parser = LINE_PARSERS[format](schema) if format in LINE_PARSERS else None
    first = 0
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


def _read_parquet(file: AnyFile, schema: EventSchema, bad: BadRecords) -> Iterator[pa.Table]:
    """Read the events of a Parquet file. A column of a wrong type makes the whole file one bad record."""
    try:
        far = not isinstance(file.content, str)  # then what is read of it is put together first
        with pa.parquet.ParquetFile(file.content, pre_buffer=far) as parquet:
            there = set(parquet.schema_arrow.names)
            names = [name for name in columns_of(schema) if name in there]
            stored = parquet.read(columns=names, use_threads=False)
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
    columns = [_fitted(stored, attribute, schema) for attribute in schema.fields]
    return pa.table(columns, schema=no_attributes(schema).schema)


def _fitted(stored: pa.Table, attribute: Field, schema: EventSchema) -> pa.ChunkedArray:
    try:
        return fitted_column(inner(stored, schema.path_of(attribute.name)), attribute)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"{attribute.name} — must be {attribute.type}; got: {error}") from error


def _stored_events(stored: pa.Table, schema: EventSchema, bad: BadRecords) -> Iterator[pa.Table]:
    try:
        table, unfit = _with_nulls(stored, schema)
    except pa.ArrowInvalid as error:
        bad.add_one(0, str(error), b"")
        return
    shown = table
    for name in unfit:
        column = inner(stored, schema.path_of(name))
        shown = shown.set_column(table.column_names.index(name), name, column)
    rows, raws = np.arange(table.num_rows, dtype=np.int64), _Rows(shown, schema)
    not_text = not_utf8(table)
    refused = np.logical_or.reduce([np.isin(rows, list(not_text)), *unfit.values()])
    if refused.any():
        places = rows[refused]

        def reason(index: int) -> str:
            row = int(places[index])
            if row in not_text:
                return f"{not_text[row]} — must be UTF-8; got other bytes"
            field = next(field for field in schema.fields if field.name in unfit and unfit[field.name][row])
            (got,) = shown_values(shown[field.name].slice(row, 1))
            return f"{field.name} — must be {field.type}; got: {got}"

        bad.add(0, places, reason, raws)
        table, rows = table.filter(pa.array(~refused)), rows[~refused]
    yield timely(table, schema, rows, 0, raws, bad)


def _with_nulls(stored: pa.Table, schema: EventSchema) -> tuple[pa.Table, dict[str, Bools]]:
    """Do what `fitted` does, with null in place of each value that does not fit.

    Returns:
        The table; and bool[n] for each attribute with such values, which tells their rows.

    Raises:
        pa.ArrowInvalid: a column has another type.
    """
    columns, unfit = [], {}
    for attribute in schema.fields:
        try:
            columns.append(_fitted(stored, attribute, schema))
        except pa.ArrowInvalid:
            _fitted(stored.slice(0, 0), attribute, schema)  # raises where it is the type, not a value
            column = inner(stored, schema.path_of(attribute.name))
            unfit[attribute.name] = too_large_or_exact(column, attribute)
            if not unfit[attribute.name].any():
                raise
            mask = pa.array(unfit[attribute.name])
            columns.append(fitted_column(pc.if_else(mask, None, column), attribute))
    return pa.table(columns, schema=no_attributes(schema).schema), unfit


def no_attributes(schema: EventSchema) -> pa.Table:
    """An empty table with the schema's attributes."""
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields]).empty_table()


def at_position(source: str, offset: int, reason: str) -> str:
    """The reason why a record is no event, behind its position as `why` takes it, or behind its file."""
    return f"{source if reason.startswith(WHOLE_FILE) else position(source, offset)} {reason}"


def first_of(bad: pa.Table) -> str:
    """The position and the reason of the first row of a table of `BAD_SCHEMA`, in a short line."""
    first = (bad[name][0].as_py() for name in ("source", "offset", "reason"))
    return one_line(at_position(*first), _MOST_CHARACTERS)

"""Reads files of events into typed columns: JSON lines, CSV with a header, lines of text, Parquet.

A file of a Delta table is read likewise, with the table's partition columns.

Text is parsed in chunks of whole lines. A chunk that fails is cut up until the bad lines stand alone, so a
bad record spoils no other one, and becomes one row of `EventsRead.bad`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from spark_pace.core.expr import ARROW_TYPES, decimal_digits
from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.plan.structs import json_rows, nested, shown_values
from spark_pace.core.tables import Bools
from spark_pace.errors import ConfigError, EventError, one_line
from spark_pace.io.bad_records import END_US, WHOLE_FILE, BadRecords, timely, with_places
from spark_pace.io.delta_log import Metadata, TableFile
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import AnyFile
from spark_pace.io.files.local import Objection
from spark_pace.io.text.column_types import fitted_column, inner, not_utf8
from spark_pace.io.text.lines import (
    KEPT_BYTES,
    LineParser,
    Lines,
    TooLong,
    chunks,
    must_be,
    parts_of,
    too_long,
)
from spark_pace.io.text.parsers import (
    CsvParser,
    JsonParser,
    header_names,
    lacking_in,
    no_event_time,
    text_parser,
)

# endings of compressed text, with the names of their codecs in pyarrow
CODECS = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
ARCHIVES = tuple(CODECS)


def first_line(name: str) -> int:
    """The line number, in an editor, of the first record of a text file of this name."""
    return 2 if ending(name) == ".csv" else 1


def position(name: str, offset: int) -> str:
    """The place of a record as `why` takes it: the line where the file is text, else the offset."""
    return f"{name}:{offset}" if ending(name) == ".parquet" else f"{name}:L{offset + first_line(name)}"


def ending(name: str) -> str:
    """The ending of a file's name, without that of an archive."""
    path = Path(name)
    return (path.with_suffix("") if path.suffix in ARCHIVES else path).suffix


NEW_YEAR_US = 180 * 24 * 3_600_000_000  # times that fall back by more go over New Year


def told_of_new_year(events: pa.Table, schema: EventSchema, source: str) -> dict[str, str]:
    """The message that a file goes over New Year if its times have no year, by the event time; else empty.

    Args:
        events: the events of the file, in the order of its lines, with the columns of `with_places`.
        schema: the attributes.
        source: the name of the file.
    """
    if not schema.form.omits_year:
        return {}
    times = events["@time"].to_numpy()
    back = np.flatnonzero(times[:-1] - times[1:] > NEW_YEAR_US)
    if not len(back):
        return {}
    before, after = (f"{time_of(us):%Y-%m-%d %H:%M:%S}" for us in times[back[0] : back[0] + 2].tolist())
    at = position(source, events["@offset"][back[0] + 1].as_py())
    fell = f"falls back from {before} to {after}"
    do = "A file must lie in the year before its last change: split it, or set that by `touch -d DATE FILE`."
    if schema.form.year is not None:
        do = "Leave `year` out: then a time is in the last year that puts it at most a day after the file "
        do += "was changed last, which `touch -d DATE FILE` sets."
    told = f"{at} — {schema.event_time} {fell}. If these times are written without a year, the log goes over "
    return {schema.event_time: f"{told}New Year, and matches over it are lost. {do}"}


def told_of_line(place: AnyPath, name: str, offset: int, schema: EventSchema | None) -> str | None:
    """Why the line at an offset is no record; None if there is no such line, or it is a record.

    Args:
        place: where the file is.
        name: the name of a file of text, perhaps compressed.
        offset: the number of the line, from 0; the header of CSV is not counted.
        schema: that of lines of text; None for other formats, which ignore blank lines only.
    """
    line = _line(place, name, offset + first_line(name) - 1)
    if line is None:
        return None
    if not line.strip():
        return "it is a blank line, which is no record"
    if schema is None or not schema.form.ignores_unmatched:
        return None
    values = pa.array([line], pa.binary())
    parser = text_parser(schema)
    if parser.matching(values)[0].as_py():
        return None
    return f"it is an ignored line: {parser.refusal}"


def _line(place: AnyPath, name: str, number: int) -> bytes | None:
    """The line of a number, from 0; None if there is none, or it is too long for a record."""
    codec = CODECS.get(Path(name).suffix)
    try:
        file = files.open_in(place, name)
    except Objection:
        return None
    with pa.input_stream(file, compression=codec) as stream:
        for chunk in chunks(stream):
            if isinstance(chunk, TooLong):
                number -= 1
                continue
            lines = Lines(chunk)
            if 0 <= number < lines.count:
                return lines.line(number)
            number -= lines.count
    return None


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


def all_read(reads: Sequence[EventsRead]) -> EventsRead:
    """Put together what was read of several files, or of parts of one."""
    events = pa.concat_tables([read.events for read in reads]).unify_dictionaries()
    bad = pa.concat_tables([read.bad for read in reads])
    # of the first file that lacks it
    lacking = {name: told for read in reversed(reads) for name, told in read.lacking.items()}
    counts = (sum(read.read_rows for read in reads), sum(read.ignored_rows for read in reads))
    return EventsRead(events, bad, counts[0], lacking, counts[1])


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
    source = name.encode("utf-8", "backslashreplace").decode()
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
            try:
                stored = parquet_rows(file, columns_of(schema))
            except pa.ArrowInvalid as error:
                return one_bad_record(f"must be Parquet; got: {error}", schema, source)
            parts = list(_stored_events(stored, schema, bad))
        else:
            codec = CODECS.get(Path(name).suffix)
            with pa.input_stream(file, compression=codec) as stream:
                parts = list(_read_text(stream, format, schema, bad, header))
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
            parsed = parser.read(part)
            bad.ignored += parsed.ignored
            bad.add(first, parsed.refused, parsed.reason, texts.line)
            yield timely(parsed.table, schema, parsed.rows, first, texts.line, bad)
            bad.settle()
            first += texts.count


def parquet_rows(file: AnyFile, columns: list[str]) -> pa.Table:
    """Read those of the columns that a Parquet file has.

    Raises:
        pa.ArrowInvalid: it is no Parquet.
        OSError: it cannot be read or, without a number, decoded.
    """
    with pa.parquet.ParquetFile(file, pre_buffer=True) as parquet:
        there = set(parquet.schema_arrow.names)
        return parquet.read(columns=[name for name in columns if name in there], use_threads=False)


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


def fitted(stored: pa.Table, schema: EventSchema) -> tuple[pa.Table, dict[str, Bools]]:
    """Take the schema's attributes from a table, in their types; missing ones are null.

    Returns:
        The table, with null in place of each number that an attribute cannot hold; and bool[n] for each
        attribute with such numbers, which tells their rows.

    Raises:
        pa.ArrowInvalid: a column has another type.
    """
    columns, unfit = [], dict[str, Bools]()
    for attribute in schema.fields:
        try:
            column, rows = fitted_column(inner(stored, schema.path_of(attribute.name)), attribute)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"{must_be(attribute)}; got: {error}") from error
        columns.append(column)
        if rows.any():
            unfit[attribute.name] = rows
    return pa.table(columns, schema=no_attributes(schema).schema), unfit


def _stored_events(stored: pa.Table, schema: EventSchema, bad: BadRecords) -> Iterator[pa.Table]:
    try:
        table, unfit = fitted(stored, schema)
    except pa.ArrowInvalid as error:
        bad.add_one(0, str(error), b"")
        return
    shown = table
    for name in unfit:
        column = inner(stored, schema.path_of(name))
        shown = shown.set_column(table.column_names.index(name), name, column)
    rows = np.arange(table.num_rows, dtype=np.int64)

    def as_json(row: int) -> bytes:
        return json_rows(nested(shown.slice(row, 1), schema))[0].encode()

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
            return f"{must_be(field)}; got: {got}"

        bad.add(0, places, reason, as_json)
        table, rows = table.filter(pa.array(~refused)), rows[~refused]
    yield timely(table, schema, rows, 0, as_json, bad)


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

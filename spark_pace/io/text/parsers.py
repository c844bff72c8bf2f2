"""Parses JSON lines and CSV by pyarrow, into columns of declared types; tells of headers that do not fit."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from spark_pace.core.expr import array_element, decimal_digits
from spark_pace.core.plan.rule import EventSchema, Field, RecordForm
from spark_pace.errors import one_line
from spark_pace.io.bad_records import BadRecords
from spark_pace.io.text.column_types import (
    csv_type,
    flat,
    has_infinite,
    json_fields,
    large_number,
    require_decimals,
    typed,
)
from spark_pace.io.text.lines import Check, Objections, PartlyParsed, short
from spark_pace.io.text.plain_json import PlainReader
from spark_pace.io.text.scan import Bytes, Ints

_MOST_CHARACTERS = 200  # of a header in a message


def no_event_time(event_time: str, columns: Sequence[str]) -> str:
    """Return the reason for a file whose header lacks the event time."""
    do = meant_column(event_time, columns) or "Its first line must be the header."
    must = f"must have the column {event_time}, the event time, in its header"
    return f"{must}; got: {_shown(columns) or 'nothing'}. {do}"


def lacking_in(columns: Sequence[str], schema: EventSchema, source: str) -> dict[str, str]:
    """Return a message for each attribute that is no column of the file, and so is null in its events."""
    attributes = [field.name for field in schema.fields]
    others = [column for column in columns if column not in attributes]
    told = {}
    for name in attributes:
        if name not in columns:
            do = meant_column(name, others) or "Correct the schema or the header."
            must = f"{source} — must have the column {name} in its header"
            told[name] = one_line(f"{must}; got: {_shown(columns)}, so it is null in its events. {do}")
    return told


def look_at_header(columns: Sequence[str], schema: EventSchema, bad: BadRecords) -> None:
    """If no row of a file has an event time, add to the first reason what the user should check."""
    told = bad.rows()
    if bad.count < 2 or not all(f"{schema.event_time} — " in reason for _, reason, _ in told):
        return
    right = f"is {schema.event_time} the right column of {_shown(columns)}?"
    note = f"no row of the file is an event: {right}"
    bad.add_to_first(f"{note} If it is, timestamp_format says how its times are written.")


def meant_column(name: str, columns: Sequence[str]) -> str:
    """Advice that names the column most similar to `name`, in small or capital letters; else empty."""
    by_letters = {column.casefold(): column for column in reversed(columns)}
    similar = get_close_matches(name.casefold(), by_letters, 1)
    return f'Did you mean "{by_letters[similar[0]]}"?' if similar else ""


def _shown(columns: Sequence[str]) -> str:
    return ", ".join(columns)[:_MOST_CHARACTERS]


_MEMBER = r"{}\s*:\s*(?:\[(?:[^\]]*[,\s])?)?\"?"  # a member up to its number, or one in its list
_MOST_COLUMNS = 10_000  # in a CSV header
_LARGE = re.compile(rb"\d{200}|[eE]\+?\d{3}")  # matches in every number too large for a DOUBLE
_EMPTY = re.compile(rb'(:[ \t]*)""')  # a member whose value is the empty text
_NO_COLUMN = "\n"  # a name that no header can hold
_TIME = pa.timestamp("us")
_NEWLINE, _OPEN, _CLOSE = b"\n{}"


class JsonParser:
    """Parses JSON, one object a line. Unknown members are ignored, missing ones are null.

    A DOUBLE may be written as an integer. Otherwise a value must be written in its own type.
    """

    def __init__(self, schema: EventSchema) -> None:
        """Read the attributes of `schema`."""
        self.fields, self.form = schema.fields, schema.form
        self.paths = {field.name: schema.path_of(field.name) for field in schema.fields}
        is_plain = not self.form.empty_is_null and not self.form.time_formats
        is_plain = is_plain and PlainReader.reads(self.fields, self.paths)
        self._plain = PlainReader(self.fields) if is_plain else None

    def plain(self, chunk: bytes) -> PartlyParsed | None:
        """Let compiled code read; None for types that it does not know."""
        return None if self._plain is None else self._plain.lines(chunk)

    def plain_values(self, text: Bytes, bounds: Ints) -> PartlyParsed | None:
        """Let compiled code read the records that begin and end at `bounds`, int64[2, n], in a text."""
        return None if self._plain is None else self._plain.records(text, bounds)

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines if each begins with ``{`` and ends with ``}``, as a record does; else None."""
        lines = chunk.rstrip(b"\n")
        if not lines.startswith(b"{") or not lines.endswith(b"}"):
            return None
        letters = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(letters == _NEWLINE)
        plain = (letters[ends - 1] == _CLOSE).all() and (letters[ends + 1] == _OPEN).all()
        return len(ends) + 1 if plain else None

    def parse(self, chunk: bytes) -> pa.Table:
        """The declared attributes, in the types of the core."""
        return self._parse(chunk, self.fields)

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The lines without the space around the object."""
        return pc.ascii_trim_whitespace(lines.view(pa.string())).view(pa.binary())

    def objections(self, records: list[bytes]) -> Objections:
        """Refuse records that are no objects; on a bare ``null`` pyarrow's reader crashes the process."""
        objects = (record.startswith(b"{") and record.endswith(b"}") for record in records)
        reason = "the record — must be a JSON object that begins with { and ends with } in its line"
        return Objections(~np.fromiter(objects, np.bool_, len(records)), reason)

    def checks(self) -> list[Check]:
        """A line must be JSON, and each attribute must have its type."""
        attributes = (Check(must_be(field), partial(self._parse, fields=(field,))) for field in self.fields)
        return [Check("the record — must be JSON", partial(self._parse, fields=())), *attributes]

    def misfit(self, error: pa.ArrowInvalid) -> str:
        """The reason for a line that is not one record, or whose attributes cannot be read together."""
        return short(f"the record — must fit the schema; got: {error}")

    def _parse(self, chunk: bytes, fields: tuple[Field, ...]) -> pa.Table:
        if self.form.empty_is_null and fields:
            filled = _EMPTY.sub(rb"\1null", chunk)
            if filled != chunk:
                self._parse_in(chunk, (), _TIME)  # the replacement must not turn other text into JSON
                chunk = filled
        if self.form.time_formats:
            return self._parse_in(chunk, fields, pa.string())
        try:
            return self._parse_in(chunk, fields, _TIME)
        except pa.ArrowInvalid as error:
            if str(_TIME) not in str(error):
                raise
        return self._parse_in(chunk, fields, pa.string())  # perhaps more than six digits of a second

    def _parse_in(self, chunk: bytes, fields: tuple[Field, ...], time: pa.DataType) -> pa.Table:
        paths = {field.name: self.paths[field.name] for field in fields}
        read = pa.schema(list(json_fields(fields, paths, time)))
        if not chunk:
            return flat(read.empty_table(), fields, paths, self.form)
        _check_utf8(chunk)
        _check_decimals(chunk, fields, paths)
        table = pa.json.read_json(
            pa.BufferReader(chunk),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=read, unexpected_field_behavior="ignore"),
        )
        columns = flat(table, fields, paths, self.form)
        doubles = [field for field in fields if "DOUBLE" in (field.type, array_element(field.type))]
        infinite = [paths[field.name] for field in doubles if has_infinite(columns[field.name])]
        if infinite and _LARGE.search(chunk):
            _check_doubles(chunk, infinite)
        return columns


def _check_doubles(chunk: bytes, paths: Sequence[tuple[str, ...]]) -> None:
    """Refuse numbers that are too large for a DOUBLE; pyarrow reads them as ``Infinity``."""
    for line in filter(_LARGE.search, chunk.split(b"\n")):
        try:
            record = json.loads(line, parse_float=str, parse_int=str)
        except (ValueError, RecursionError):  # the line holds several records
            continue
        for number in (text for path in paths for text in _texts_at(record, path)):
            if math.isinf(float(number)):
                raise pa.ArrowInvalid(f"{number}, which is too large")


def _check_decimals(chunk: bytes, fields: tuple[Field, ...], paths: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse numbers that do not fit a DECIMAL attribute, see `require_decimals`."""
    text = pa.array([chunk], pa.large_binary()).view(pa.large_string())
    for field in fields:
        kind = array_element(field.type) or field.type
        if not decimal_digits(kind):
            continue
        path = paths[field.name]
        large = _MEMBER.format(re.escape(json.dumps(path[-1], ensure_ascii=False))) + large_number(kind)
        # names and numbers may be written with escapes too
        suspect = rf"{large}|\\" if b"\\" in chunk else large
        if not pc.match_substring_regex(text, suspect)[0].as_py():
            continue
        for line in filter(re.compile(suspect.encode()).search, chunk.split(b"\n")):
            try:
                record = json.loads(line, parse_float=str, parse_int=str)
            except (ValueError, RecursionError):  # Arrow refuses it, or reads several records
                continue
            require_decimals(_texts_at(record, path), kind)


def _texts_at(record: Any, path: tuple[str, ...]) -> list[str]:
    """The texts at a path of a record: one, those of a list, or none."""
    for name in path:
        record = record.get(name) if isinstance(record, dict) else None
    return [value for value in (record if isinstance(record, list) else [record]) if isinstance(value, str)]


def header_names(line: bytes) -> list[str]:
    """The column names in the first line of a CSV file.

    If the line is no header, the whole line counts as one name. No schema has it, so every record is refused.
    """
    header = line.strip().decode("utf-8", "replace")
    try:
        names = next(csv.reader([header]), [])
    except csv.Error:
        return [header]
    return names if len(names) <= _MOST_COLUMNS else [header]


class CsvParser:
    """Parses comma-separated values; an empty value without quotes is null."""

    def __init__(self, schema: EventSchema, names: Sequence[str]) -> None:
        """Read the attributes of `schema` from columns of these names."""
        self.fields, self.form = schema.fields, schema.form
        self.names = names

    def plain(self, chunk: bytes) -> PartlyParsed | None:
        """Nothing: pyarrow reads CSV."""
        return None

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines if none is blank and all quotation marks are in pairs; else None.

        None for a single column, where a line of spaces is blank too.
        """
        lines = chunk.rstrip(b"\r\n")
        # pyarrow closes an open quotation at the end, and takes a bare carriage return for the end of a line
        if lines.count(b'"') % 2 or lines.count(b"\r") != lines.count(b"\r\n"):
            return None
        blank = lines.startswith((b"\n", b"\r")) or b"\n\n" in lines or b"\n\r" in lines
        if len(self.names) < 2 or not lines or blank:
            return None
        return lines.count(b"\n") + 1

    def parse(self, chunk: bytes) -> pa.Table:
        """The declared attributes, in the types of the core."""
        return self._parse(chunk, self.fields)

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The lines without a carriage return at the end; spaces stay, because they belong to the values."""
        return pc.replace_substring_regex(lines, r"\r\z", "")

    def objections(self, records: list[bytes]) -> Objections:
        """Refuse records that leave a quotation mark open; the next line is a record of its own."""
        wrong = "the record — must close its quotation marks in its line; got an open one"
        opened = (b'"' in record and _leaves_open(record) for record in records)
        return Objections(np.fromiter(opened, np.bool_, len(records)), wrong)

    def checks(self) -> list[Check]:
        """A line must have a value for each column, and each attribute must have its type."""
        attributes = (Check(must_be(field), partial(self._parse, fields=(field,))) for field in self.fields)
        return [Check(self._must_have(), partial(self._read, types={_NO_COLUMN: pa.null()})), *attributes]

    def misfit(self, error: pa.ArrowInvalid) -> str:
        """The reason why `parse` refused a line that passes all checks: it is not one record."""
        return short(f"{self._must_have()}; got: {error}")

    def _must_have(self) -> str:
        return f"the record — must have the columns {', '.join(self.names)}"

    def _parse(self, chunk: bytes, fields: tuple[Field, ...]) -> pa.Table:
        types = {field.name: csv_type(field.type) for field in fields}
        if not chunk:
            return declared_columns(pa.schema(list(types.items())).empty_table(), fields, self.form)
        table = self._read(chunk, types)
        infinite = [
            name for name, kind in types.items() if kind == pa.float64() and has_infinite(table[name])
        ]
        if infinite:
            for texts in self._read(chunk, dict.fromkeys(infinite, pa.string())).columns:
                typed(texts, "DOUBLE")
        return declared_columns(table, fields, self.form)

    def _read(self, chunk: bytes, types: dict[str, pa.DataType]) -> pa.Table:
        return pa.csv.read_csv(
            pa.BufferReader(chunk),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(chunk) + 1, column_names=self.names
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                include_missing_columns=True,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=self.form.empty_is_null,
            ),
        )


def must_be(field: Field) -> str:
    """The demand on an attribute's type, in words."""
    return f"{field.name} — must be {field.type}"


def _leaves_open(line: bytes) -> bool:
    """True if a value begins with a quotation mark that is not closed.

    Inside a value that does not begin with one, quotation marks are ordinary letters.
    """
    # two in a row stand for one in the text; of a longer row one is left if their number is odd
    line = b"," + line.replace(b'""', b"")
    at = 0
    while (opened := line.find(b',"', at)) >= 0:
        at = line.find(b'"', opened + 2)
        if at < 0:
            return True
    return False


def declared_columns(table: pa.Table, fields: tuple[Field, ...], form: RecordForm) -> pa.Table:
    """The declared columns, in order, in the types of the core; without fields, the table itself."""
    columns = {field.name: typed(table.column(field.name), field.type, form) for field in fields}
    return pa.table(columns) if fields else table


def _check_utf8(chunk: bytes) -> None:
    """Refuse bytes that are not UTF-8, as pyarrow's CSV reader does; its JSON reader does not."""
    if not chunk.isascii():
        try:
            chunk.decode()
        except UnicodeDecodeError as error:
            raise pa.ArrowInvalid(f"not UTF-8: {error}") from error

"""Parses lines into columns of declared types: JSON and CSV by pyarrow, text by regular expressions.

Lines of text are made UTF-8 first, so that no byte of a line can keep it from being matched. It is told here
too of headers that do not fit.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from spark_pace.core.expr import array_element, decimal_digits
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.core.tables import Bools, bools
from spark_pace.errors import one_line
from spark_pace.io.text.column_types import (
    csv_type,
    flat,
    has_infinite,
    json_fields,
    large_number,
    marked,
    require_decimals,
    typed,
)
from spark_pace.io.text.lines import ParsedLines, filled_lines, lines_at, read_lines
from spark_pace.io.text.plain_json import PlainReader

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
_BEFORE = re.compile(rb"^[^{\n]+(?=\{)", re.MULTILINE)  # the text before the first brace of a line
_WITHOUT = re.compile(rb"^[^{\n]*[^{\s][^{\n]*$", re.MULTILINE)  # a line with text and without a brace


class JsonParser:
    """Parses JSON, one object a line. Unknown members are ignored, missing ones are null.

    A DOUBLE may be written as an integer. Otherwise a value must be written in its own type.
    """

    must = "the record — must be JSON"
    refusal = "the record — must be a JSON object that begins with { and ends with } in its line"

    def __init__(self, schema: EventSchema, in_text: bool = False) -> None:
        """Read the attributes of `schema`; `in_text`: from the first brace of a line to its end."""
        self.fields, self.form, self._in_text = schema.fields, schema.form, in_text
        self.paths = {field.name: schema.path_of(field.name) for field in schema.fields}
        is_plain = not self.form.empty_is_null and not self.form.time_formats
        is_plain = is_plain and PlainReader.reads(self.fields, self.paths)
        self._plain = PlainReader(self.fields) if is_plain else None

    def read(self, chunk: bytes) -> ParsedLines:
        """Let compiled code read what it can; of text, lines without a brace may be no records."""
        ignored = 0
        if self._in_text:
            text = chunk if chunk.isascii() else chunk.decode("utf-8", "replace").encode()
            chunk = _BEFORE.sub(b"", text)
            if self.form.ignores_unmatched:
                chunk, ignored = _WITHOUT.subn(b"", chunk)
        parse = partial(read_lines, parser=self)
        read = parse(chunk) if self._plain is None else self._plain.lines(chunk, parse)
        return replace(read, ignored=ignored)

    def matching(self, values: pa.BinaryArray) -> pa.BooleanArray:
        """bool[n]: which values have a brace; null for a null."""
        return pc.match_substring(values, "{")

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines if each begins with ``{`` and ends with ``}``, as a record does; else None."""
        lines = chunk.rstrip(b"\n")
        ends = lines.count(b"\n")
        is_plain = lines.startswith(b"{") and lines.endswith(b"}") and lines.count(b"}\n{") == ends
        return ends + 1 if is_plain else None

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The lines without the space around the object."""
        return pc.ascii_trim_whitespace(lines.view(pa.string())).view(pa.binary())

    def refuses(self, records: list[bytes]) -> Iterator[bool]:
        """Refuse records that are no objects; on a bare ``null`` pyarrow's reader crashes the process."""
        return (not record.startswith(b"{") or not record.endswith(b"}") for record in records)

    def parse(self, chunk: bytes, fields: tuple[Field, ...] | None = None) -> pa.Table:
        """The declared attributes, or `fields`, in the types of the core."""
        fields = self.fields if fields is None else fields
        if self.form.empty_is_null and fields:
            filled = _EMPTY.sub(rb"\1null", chunk)
            if filled != chunk:
                self.parse(chunk, ())  # the replacement must not turn other text into JSON
                chunk = filled
        read = pa.schema(list(json_fields(fields, self.paths)))
        if not chunk:
            return flat(read.empty_table(), fields, self.paths, self.form)
        _check_utf8(chunk)
        _check_decimals(chunk, fields, self.paths)
        table = pa.json.read_json(
            pa.BufferReader(chunk),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=read, unexpected_field_behavior="ignore"),
        )
        columns = flat(table, fields, self.paths, self.form)
        doubles = [field for field in fields if "DOUBLE" in (field.type, array_element(field.type))]
        infinite = [self.paths[field.name] for field in doubles if has_infinite(columns[field.name])]
        if infinite:
            _check_doubles(chunk, infinite)
        return columns


def _check_doubles(chunk: bytes, paths: Sequence[tuple[str, ...]]) -> None:
    """Refuse numbers that are too large for a DOUBLE; pyarrow reads them as ``Infinity``."""
    for record in _suspects(chunk, _LARGE):
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
        if pc.match_substring_regex(text, suspect)[0].as_py():
            for record in _suspects(chunk, re.compile(suspect.encode())):
                require_decimals(_texts_at(record, path), kind)


def _suspects(chunk: bytes, suspect: re.Pattern[bytes]) -> Iterator[Any]:
    """The records of lines with a match, numbers as texts; Arrow refuses what they lack, or reads several."""
    for line in filter(suspect.search, chunk.split(b"\n")):
        with suppress(ValueError, RecursionError):
            yield json.loads(line, parse_float=str, parse_int=str)


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

    refusal = "the record — must close its quotation marks in its line; got an open one"

    def __init__(self, schema: EventSchema, names: Sequence[str]) -> None:
        """Read the attributes of `schema` from columns of these names."""
        self.fields, self.form = schema.fields, schema.form
        self.names = names
        self.must = f"the record — must have the columns {', '.join(names)}"

    def read(self, chunk: bytes) -> ParsedLines:
        """Let pyarrow read."""
        return read_lines(chunk, self)

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

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The lines without a carriage return at the end; spaces stay, because they belong to the values."""
        return pc.replace_substring_regex(lines, r"\r\z", "")

    def refuses(self, records: list[bytes]) -> Iterator[bool]:
        """Refuse records that leave a quotation mark open; the next line is a record of its own."""
        return (b'"' in record and _leaves_open(record) for record in records)

    def parse(self, chunk: bytes, fields: tuple[Field, ...] | None = None) -> pa.Table:
        """The declared attributes, or `fields`, in the types of the core."""
        fields = self.fields if fields is None else fields
        types = {field.name: csv_type(field.type) for field in fields} or {_NO_COLUMN: pa.null()}
        table = self._read(chunk, types) if chunk else pa.schema(list(types.items())).empty_table()
        infinite = [
            name for name, kind in types.items() if kind == pa.float64() and has_infinite(table[name])
        ]
        if infinite:
            for texts in self._read(chunk, dict.fromkeys(infinite, pa.string())).columns:
                typed(texts, "DOUBLE")
        return flat(table, fields, {field.name: (field.name,) for field in fields}, self.form)

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


def _check_utf8(chunk: bytes) -> None:
    """Refuse bytes that are not UTF-8, as pyarrow's CSV reader does; its JSON reader does not."""
    try:
        if not chunk.isascii():
            chunk.decode()
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"not UTF-8: {error}") from error


def text_parser(schema: EventSchema) -> TextParser | JsonParser:
    """The parser for lines of text in the schema's form."""
    return JsonParser(schema, in_text=True) if schema.form.has_json else TextParser(schema)


class TextParser:
    """Parses lines that match a regular expression from beginning to end. An empty group is null.

    Of several expressions the first one that matches a line says what it holds.
    """

    def __init__(self, schema: EventSchema) -> None:
        """Read the attributes of `schema`, by the regular expressions of its form."""
        self.fields, self.form = schema.fields, schema.form
        # the group in front keeps alternatives together
        self._regexes = [rf"^(?:{regex})$" for regex in schema.form.regexes]
        preset, regex = schema.form.preset, "one regex" if schema.form.further else "the regex"
        must = f"have the form of the preset {preset}" if preset else f"match {regex} of the section text"
        self.refusal = f"the record — must {must}"

    def read(self, chunk: bytes) -> ParsedLines:
        """Read the lines that match. Others are bad records, or none if the form says so."""
        _, numbers = filled_lines(chunk)
        matches, groups = self._groups(lines_at(chunk, numbers))
        ignores, places = self.form.ignores_unmatched, np.flatnonzero(matches)
        columns, misfits = dict[str, pa.ChunkedArray](), dict[int, str]()
        reasons = {} if ignores else dict.fromkeys(np.flatnonzero(~matches).tolist(), self.refusal)
        for field in self.fields:
            texts = groups.get(field.name, pa.nulls(len(matches), pa.string())).filter(pa.array(matches))
            columns[field.name], wrong = self._column(texts, field)
            misfits = wrong | misfits
        reasons |= {int(places[row]): reason for row, reason in misfits.items()}
        refused = np.array(sorted(reasons), np.int64)
        good = np.ones(len(places), np.bool_)
        good[[*misfits]] = False
        table, rows = pa.table(columns).filter(pa.array(good)), numbers[places[good]]
        ignored = len(numbers) - len(places) if ignores else 0
        return ParsedLines(table, rows, numbers[refused], lambda index: reasons[int(refused[index])], ignored)

    def matching(self, values: pa.BinaryArray) -> pa.BooleanArray:
        """bool[n]: which values match; null for a null."""
        return pc.if_else(values.is_valid(), pa.array(self._groups(values)[0]), None)

    def _groups(self, lines: pa.BinaryArray) -> tuple[Bools, dict[str, pa.StringArray]]:
        """bool[n]: the lines that match, without their ends; and by name the groups of each, else null."""
        left = _in_utf8(pc.replace_substring_regex(lines, r"\r?\n?\z", ""))
        matches, groups = np.zeros(len(lines), np.bool_), dict[str, pa.StringArray]()
        for regex in self._regexes:
            found = pc.extract_regex(left, regex)
            for field in found.type:
                texts = pc.struct_field(found, field.name)
                groups[field.name] = pc.coalesce(groups.get(field.name, texts), texts)
            matches |= bools(found.is_valid())
            left = pc.if_else(pa.array(matches), None, left)
        return matches, groups

    def _column(self, texts: pa.StringArray, field: Field) -> tuple[pa.ChunkedArray, dict[int, str]]:
        """An attribute of lines that match, as `marked` gives it."""
        texts = pa.chunked_array([pc.if_else(pc.equal(texts, ""), None, texts)])
        return marked(texts, field, partial(typed, kind=field.type, form=self.form))


def _in_utf8(lines: pa.BinaryArray) -> pa.StringArray:
    """The lines with U+FFFD in place of bytes that are not UTF-8, as Spark and Python replace them."""
    texts = lines.view(pa.string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        decoded = (None if line is None else line.decode("utf-8", "replace") for line in lines.to_pylist())
        return pa.array(decoded, pa.string())
    return texts

"""Reads lines of text by regular expressions whose named groups are attributes, and JSON after some text.

Lines are made UTF-8 first, so that no byte of a line can keep it from being matched.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.text.column_types import typed
from spark_pace.io.text.lines import Check, Objections, PartlyParsed, filled_lines, lines_at, short
from spark_pace.io.text.parsers import JsonParser, must_be

_NEXT = r"[\x80-\xbf]"
_UTF8 = (  # matches bytes that are UTF-8
    rf"\A(?:[\x00-\x7f]|[\xc2-\xdf]{_NEXT}|\xe0[\xa0-\xbf]{_NEXT}|[\xe1-\xec\xee\xef]{_NEXT}{{2}}"
    rf"|\xed[\x80-\x9f]{_NEXT}|\xf0[\x90-\xbf]{_NEXT}{{2}}|[\xf1-\xf3]{_NEXT}{{3}}|\xf4[\x80-\x8f]{_NEXT}{{2}})*\z"
)


def in_utf8(lines: pa.BinaryArray) -> pa.BinaryArray:
    """The lines with U+FFFD in place of bytes that are not UTF-8, as Spark and Python replace them."""
    try:
        lines.view(pa.string()).validate(full=True)
    except pa.ArrowInvalid:
        wrong = pc.invert(pc.match_substring_regex(lines, _UTF8))
        texts = (line.decode("utf-8", "replace").encode() for line in lines.filter(wrong).to_pylist())
        return pc.replace_with_mask(lines, wrong, pa.array(texts, pa.binary()))
    return lines


_BEFORE = re.compile(rb"^[^{\n]+(?=\{)", re.MULTILINE)


class JsonInTextParser(JsonParser):
    """Parses the JSON of a line, from the first brace to the end of the line."""

    def plain(self, chunk: bytes) -> PartlyParsed:
        """Let compiled code read; lines without a brace are left over, or ignored if the form says so."""
        bounds, numbers = filled_lines(chunk)
        lines = len(numbers)
        if self.form.ignores_unmatched:
            has_brace = self.matching(lines_at(np.frombuffer(chunk, np.uint8), bounds))
            has_brace = has_brace.to_numpy(zero_copy_only=False)
            bounds, numbers = bounds[:, has_brace], numbers[has_brace]
        read = super().plain(_json(chunk))
        left = numbers if read is None else numbers[~np.isin(numbers, read.rows)]
        among = np.ascontiguousarray(bounds[:, np.isin(numbers, left)])
        if read is None:
            read = PartlyParsed(super().parse(b""), np.empty(0, np.int64), left, among)
        return replace(read, left=left, bounds=among, ignored=lines - len(numbers))

    def matching(self, values: pa.BinaryArray) -> pa.BooleanArray:
        """bool[n]: which values have a brace; null for a null."""
        return pc.match_substring(values, "{")

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines if each has one JSON object at its end, else None."""
        return super().plain_rows(_json(chunk))

    def parse(self, chunk: bytes) -> pa.Table:
        """Parse the JSON of lines into the declared attributes, in the types of the core."""
        return super().parse(_json(chunk))

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The JSON of the lines, in UTF-8."""
        return super().records(in_utf8(pc.replace_substring_regex(lines, r"\A[^{]+\{", "{")))


def _json(chunk: bytes) -> bytes:
    """The lines without the text before their first brace."""
    return _BEFORE.sub(b"", chunk)


def text_parser(schema: EventSchema) -> TextParser | JsonInTextParser:
    """The parser for lines of text in the schema's form."""
    return JsonInTextParser(schema) if schema.form.has_json else TextParser(schema)


class TextParser:
    """Parses lines that match a regular expression from beginning to end. An empty group is null.

    Of several expressions the first one that matches a line says what it holds.
    """

    def __init__(self, schema: EventSchema) -> None:
        """Read the attributes of `schema`, by the regular expressions of its form."""
        self.fields, self.form = schema.fields, schema.form
        # the group in front keeps alternatives together
        self._regexes = [rf"^(?:{regex})$" for regex in schema.form.regexes]

    def plain(self, chunk: bytes) -> PartlyParsed | None:
        """Read the lines that match, if all their groups have their types; leave or ignore the others."""
        bounds, numbers = filled_lines(chunk)
        lines = lines_at(np.frombuffer(chunk, np.uint8), bounds)
        groups = self._groups(self.records(lines))
        matches = groups.is_valid().to_numpy(zero_copy_only=False)
        ignored = 0
        if self.form.ignores_unmatched:
            ignored = groups.null_count
            bounds, numbers, groups = bounds[:, matches], numbers[matches], groups.drop_null()
            matches = np.ones(len(groups), np.bool_)
        try:
            table = self._table(groups.drop_null(), self.fields)
        except pa.ArrowInvalid:
            matches = np.zeros(len(groups), np.bool_)
            table = self.parse(b"")
        among = np.ascontiguousarray(bounds[:, ~matches])
        return PartlyParsed(table, numbers[matches], numbers[~matches], among, ignored)

    def matching(self, values: pa.BinaryArray) -> pa.BooleanArray:
        """bool[n]: which values match; null for a null."""
        return pc.if_else(values.is_valid(), self._groups(self.records(values)).is_valid(), None)

    def plain_rows(self, chunk: bytes) -> int | None:
        """None, because each line must be matched."""
        return None

    def parse(self, chunk: bytes) -> pa.Table:
        """The declared attributes, in the types of the core."""
        return self._parse(chunk, self.fields)

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The lines in UTF-8, without their ends of line."""
        return in_utf8(pc.replace_substring_regex(lines, r"\r?\n?\z", ""))

    def objections(self, records: list[bytes]) -> Objections:
        """Refuse lines that do not match."""
        groups = self._groups(pa.array(records, pa.binary()))
        preset = self.form.preset
        regex = "one regex" if self.form.further else "the regex"
        must = f"have the form of the preset {preset}" if preset else f"match {regex} of the section text"
        return Objections(groups.is_null().to_numpy(zero_copy_only=False), f"the record — must {must}")

    def checks(self) -> list[Check]:
        """Each attribute must have its type."""
        return [Check(must_be(field), partial(self._parse, fields=(field,))) for field in self.fields]

    def misfit(self, error: pa.ArrowInvalid) -> str:
        """The reason for a line whose attributes cannot be read together."""
        return short(f"the record — must fit the schema; got: {error}")

    def _parse(self, chunk: bytes, fields: tuple[Field, ...]) -> pa.Table:
        lines = pa.array(chunk.split(b"\n") if chunk else [], pa.binary())
        groups = self._groups(lines)
        if groups.null_count:
            raise pa.ArrowInvalid("a line that does not match")
        return self._table(groups, fields)

    def _groups(self, lines: pa.BinaryArray) -> pa.StructArray:
        """The groups of each line, of `records`; null for a line that does not match."""
        left, found = lines.view(pa.string()), list[pa.StructArray]()
        for regex in self._regexes:
            found.append(pc.extract_regex(left, regex))
            if found[-1].null_count == 0:
                break
            left = pc.if_else(found[-1].is_valid(), None, left)
        return found[0] if len(found) == 1 else _first_valid(found)

    def _table(self, groups: pa.StructArray, fields: tuple[Field, ...]) -> pa.Table:
        """The attributes of lines that match."""
        columns = {}
        for field in fields:
            if groups.type.get_field_index(field.name) < 0:
                columns[field.name] = pa.chunked_array([pa.nulls(len(groups), ARROW_TYPES[field.type])])
                continue
            texts = pc.struct_field(groups, field.name)
            texts = pc.if_else(pc.equal(texts, ""), None, texts)
            columns[field.name] = typed(pa.chunked_array([texts]), field.type, self.form)
        return pa.table(columns)


def _first_valid(found: list[pa.StructArray]) -> pa.StructArray:
    """For each line the groups of the one expression that has found it; null where none has."""
    columns: dict[str, pa.Array] = {}
    for groups in found:
        for field in groups.type:
            texts = pc.struct_field(groups, field.name)
            columns[field.name] = pc.coalesce(columns[field.name], texts) if field.name in columns else texts
    is_null = pc.is_null(pc.coalesce(*(pc.if_else(groups.is_valid(), True, None) for groups in found)))
    return pa.StructArray.from_arrays([*columns.values()], [*columns], mask=is_null)

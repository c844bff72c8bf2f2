"""Reads the key ``partition_by``, and checks the attributes of keys wherever they are named."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spark_pace.core.expr import is_single
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.plan.rule import EventSchema, column_name
from spark_pace.rules.document.report import Place, Report, nearest, quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.expressions.attributes import ONE_VALUE, find_type
from spark_pace.rules.expressions.types import Wrong

MAX_KEYS = 16  # attributes of a key
_OF_TEXT = "Of lines of text a group of text.regex makes an attribute."
_OF_OTHERS = "The events must have what it computes as an attribute."
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_partition(fields: Section, schema: EventSchema) -> tuple[str, ...]:
    """Read the key ``partition_by``; wrong attributes are reported and left out."""
    items = fields.texts("partition_by", "partition_by: [id]")
    named = [(item.text, item.place) for item in items]
    place = fields.key_place("partition_by") if items else fields.place
    return checked_keys(named, place, schema, fields.report)


def checked_keys(
    named: Sequence[tuple[str, Place]], place: Place, schema: EventSchema, report: Report
) -> tuple[str, ...]:
    """The attributes of a key without the wrong ones, which are reported; `place` is that of all."""
    if len(named) > MAX_KEYS:
        report.add(place, f"must name at most {MAX_KEYS} attributes", f"{len(named)}", "Name fewer.")
    found: list[str] = []
    for name, at in named[:MAX_KEYS]:
        wrong = _wrong(name, schema, found)
        if wrong is None:
            found.append(name)
        else:
            report.add(at, wrong.must, wrong.got, wrong.do)
    return tuple(found)


def _wrong(name: str, schema: EventSchema, found: Sequence[str]) -> Wrong | None:
    if not {"(", " "}.isdisjoint(name) and name not in (names := [field.name for field in schema.fields]):
        must = "must name an attribute: a key is no expression"
        do = _OF_TEXT if schema.form.reads_text else _OF_OTHERS
        return Wrong(must, quote(name), f"{nearest(name, names)} {do}")
    column = column_name(name) if len(schema.path_of(name)) > 1 else name
    kind = find_type(schema, name)
    if isinstance(kind, Wrong):
        return kind
    if not is_single(kind):
        return Wrong("must name an attribute of single values", f"{quote(name)}, {kind}", ONE_VALUE)
    if kind == "DOUBLE":
        must, got = "must name an attribute with exact values", f"{quote(name)}, a DOUBLE"
        return Wrong(must, got, "Use a BIGINT or STRING attribute.")
    if not _IDENTIFIER.fullmatch(column) or column.lower() in FIXED_COLUMNS:
        must, taken = "must be usable as a column of the matches", ", ".join(FIXED_COLUMNS)
        return Wrong(must, quote(name), f"Rename the attribute: letters, digits and _, but none of {taken}.")
    if column in map(column_name, found):
        return Wrong("must name an attribute once", quote(name), "Remove one.")
    return None

"""Reads the key ``partition_by``: the attributes that divide a rule's stream by their values."""

from __future__ import annotations

import re

from spark_pace.core.expr import is_single
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.plan.rule import EventSchema, column_name
from spark_pace.rules.document.report import quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.expressions.attributes import ONE_VALUE, find_type
from spark_pace.rules.expressions.types import Wrong

MAX_KEYS = 16
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_partition(fields: Section, schema: EventSchema) -> tuple[str, ...]:
    """The attributes that are right; wrong ones are reported."""
    found: list[str] = []
    items = fields.texts("partition_by", "partition_by: [id]")
    if len(items) > MAX_KEYS:
        place, must = fields.key_place("partition_by"), f"must name at most {MAX_KEYS} attributes"
        fields.report.add(place, must, f"{len(items)}", "Name fewer.")
    for item in items[:MAX_KEYS]:
        name, report = item.text, fields.report
        column = column_name(name) if len(schema.path_of(name)) > 1 else name
        kind = find_type(schema, name)
        if isinstance(kind, Wrong):
            report.add(item.place, kind.must, kind.got, kind.do)
        elif not is_single(kind):
            must = "must name an attribute of single values"
            report.add(item.place, must, f"{quote(name)}, {kind}", ONE_VALUE)
        elif kind == "DOUBLE":
            must, got = "must name an attribute with exact values", f"{quote(name)}, a DOUBLE"
            report.add(item.place, must, got, "Use a BIGINT or STRING attribute.")
        elif not _IDENTIFIER.fullmatch(column) or column.lower() in FIXED_COLUMNS:
            must, taken = "must be usable as a column of the matches", ", ".join(FIXED_COLUMNS)
            do = f"Rename the attribute: letters, digits and _, but none of {taken}."
            report.add(item.place, must, quote(name), do)
        elif column in map(column_name, found):
            report.add(item.place, "must name an attribute once", quote(name), "Remove one.")
        else:
            found.append(name)
    return tuple(found)

"""Reads the keys ``partition_by`` and ``forget_key_after``, and checks attributes of keys everywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spark_pace.core.expr import is_single
from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.operate.match_table import TAKEN_COLUMNS
from spark_pace.core.plan.rule import (
    EventSchema,
    GridSpan,
    Pattern,
    PredicateSpan,
    SessionSpan,
    Span,
    column_name,
)
from spark_pace.rules.document.document import Section, describe
from spark_pace.rules.document.report import Place, Report, nearest, quote
from spark_pace.rules.expressions.types import ONE_VALUE, UNKNOWN_EVENTS, Wrong, find_type
from spark_pace.rules.lengths import read_duration

MAX_KEYS = 16  # attributes of a key
_COMPUTED = "The events must have what it computes as an attribute, such as a group of text.regex."
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_partition(fields: Section, schema: EventSchema) -> tuple[str, ...]:
    """Read the key ``partition_by``; wrong attributes are reported and left out."""
    items = fields.texts("partition_by", "partition_by: [id]")
    named = [(item.text, item.place) for item in items]
    if schema is UNKNOWN_EVENTS:
        return tuple(item.text for item in items)
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
        return Wrong(must, quote(name), f"{nearest(name, names)} {_COMPUTED}")
    column = column_name(name) if len(schema.path_of(name)) > 1 else name
    kind = find_type(schema, name)
    if isinstance(kind, Wrong):
        return kind
    if not is_single(kind):
        return Wrong("must name an attribute of single values", f"{quote(name)}, {kind}", ONE_VALUE)
    if kind == "DOUBLE":
        must, got = "must name an attribute with exact values", f"{quote(name)}, a DOUBLE"
        return Wrong(must, got, "Use a BIGINT or STRING attribute.")
    if not _IDENTIFIER.fullmatch(column) or column.lower() in TAKEN_COLUMNS:
        must = "must be usable as a column of the matches"
        do = "Rename the attribute: letters, digits and _, but no column that every match has."
        return Wrong(must, quote(name), do)
    if column in map(column_name, found):
        return Wrong("must name an attribute once", quote(name), "Remove one.")
    return None


def read_forgetting(
    rule: Section, pattern: Pattern | None, span: Span | None, *, keyed: bool = False
) -> int | None:
    """Read the length of time, as microseconds; None if the key is missing or wrong.

    Args:
        rule: the keys of the rule.
        pattern: its pattern; None if it has none or a wrong one.
        span: its span; None if it has none or a wrong one.
        keyed: whether the rule has keys, though not by `partition_by`.
    """
    node = rule.node("forget_key_after")
    if node is None:
        return None
    report, place = rule.report, rule.key_place("forget_key_after")
    if not keyed and not rule.has("partition_by"):
        do = "Add for example partition_by: [id], or leave it out."
        if rule.has("match_recognize"):
            do = "Write PARTITION BY in the clause, or leave it out."
        report.add(place, 'must stand beside "partition_by", whose keys it forgets', "it alone", do)
    after_us = read_duration(node, report)
    longest_us = max((one for one in _windows_us(rule, pattern, span) if one is not None), default=0)
    if after_us is not None and longest_us > after_us:
        must = f"must be at least the longest window of the rule, {canonical_duration(longest_us)}"
        report.add(node.place, must, describe(node), "Lengthen it, or shorten that window.")
    return after_us


def _windows_us(rule: Section, pattern: Pattern | None, span: Span | None) -> list[int | None]:
    """How long the windows of a rule are, in microseconds, as far as time ends them."""
    if isinstance(span, PredicateSpan):
        return [span.within_us]
    if isinstance(span, GridSpan | SessionSpan):
        return [span.size_us if isinstance(span, GridSpan) else span.gap_us]
    if pattern is None or rule.has("span"):
        return []
    within_us = None if pattern.within is None else pattern.within.time_us
    return [within_us, *(absence.within_us for absence in pattern.absences)]

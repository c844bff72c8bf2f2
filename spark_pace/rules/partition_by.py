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
from spark_pace.rules.document.document import Mapping, Node, Section, describe
from spark_pace.rules.document.report import Place, Report, nearest, quote
from spark_pace.rules.expressions.types import ONE_VALUE, Wrong, find_type
from spark_pace.rules.lengths import read_duration

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
    if not _IDENTIFIER.fullmatch(column) or column.lower() in TAKEN_COLUMNS:
        must, taken = "must be usable as a column of the matches", ", ".join(TAKEN_COLUMNS)
        return Wrong(must, quote(name), f"Rename the attribute: letters, digits and _, but none of {taken}.")
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
    window = _longest_window(rule, pattern, span)
    if after_us is not None and window is not None and window[1] > after_us:
        must = f"must be at most forget_key_after, {canonical_duration(after_us)}"
        report.add(window[0].place, must, describe(window[0]), "Shorten it, or lengthen forget_key_after.")
    for absence in () if pattern is None or rule.has("span") else pattern.absences:
        if after_us is not None and (absence.within_us or 0) > after_us:
            must = f"must not be shorter than the within of {quote(absence.component.name)}"
            report.add(node.place, must, describe(node), "Shorten that window, or lengthen it.")
    return after_us


def _longest_window(rule: Section, pattern: Pattern | None, span: Span | None) -> tuple[Node, int] | None:
    """The node that limits how long a selection stays open, and its microseconds; None if no time does."""
    at_span = rule.node("span")
    if isinstance(at_span, Mapping) and isinstance(span, PredicateSpan):
        return _at(at_span, "within", span.within_us)
    if isinstance(at_span, Mapping) and isinstance(span, GridSpan):
        return _at(at_span, "size", span.size_us)
    if isinstance(at_span, Mapping) and isinstance(span, SessionSpan):
        return _at(at_span, "gap", span.gap_us)
    node = rule.node("within")
    if node is None or rule.has("span") or pattern is None or pattern.within is None:
        return None
    if pattern.within.time_us is None:
        return None
    return (
        _at(node, "time", pattern.within.time_us)
        if isinstance(node, Mapping)
        else (node, pattern.within.time_us)
    )


def _at(mapping: Mapping, key: str, length_us: int) -> tuple[Node, int] | None:
    """The node of a key, with the length; None if the key is misspelt, which was reported before."""
    entry = mapping.entries.get(key)
    return None if entry is None else (entry[1], length_us)

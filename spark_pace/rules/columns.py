"""Reads the columns of a rule's matches: ``partition_by`` with ``forget_key_after``, and ``emit``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spark_pace.core.expr import is_single
from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.match.contexts import context_of
from spark_pace.core.operate.match_table import TAKEN_COLUMNS
from spark_pace.core.plan.rule import (
    EmitField,
    EventSchema,
    GridSpan,
    Pattern,
    PredicateSpan,
    Rule,
    SessionSpan,
    Span,
    column_name,
)
from spark_pace.rules.document import Node, Place, Report, Scalar, Section, describe, quote
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.parsing import as_expression
from spark_pace.rules.expressions.scopes import OfMatches, Scope, event_scope, move_scope, span_scope
from spark_pace.rules.expressions.types import ONE_VALUE, UNKNOWN_EVENTS, Wrong, find_type
from spark_pace.rules.fold import is_machine
from spark_pace.rules.lengths import read_duration
from spark_pace.rules.rule_kinds import kind_of
from spark_pace.rules.schema import SCALARS, TYPE_NAMES
from spark_pace.rules.span import opens_span

MAX_KEYS = 16  # attributes of a key
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


MAX_FIELDS = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


# ---------------------------------------------------------------- emit


def read_emit(
    rule: Section, schema: EventSchema, pattern: Pattern | None, shared: tuple[str, ...]
) -> tuple[EmitField, ...]:
    """Read the key ``emit``: expressions, or for a Python operator the types of its fields.

    `shared` are the attributes of the rule's key, which are columns too.
    """
    scope = _scope(rule, schema, pattern, shared)
    mapping = rule.mapping("emit", "{total: DOUBLE}" if scope is None else "{started: a.time}")
    if mapping is None:
        return ()
    if len(mapping.entries) > MAX_FIELDS:
        rule.report.add(
            mapping.place,
            f"must have at most {MAX_FIELDS} fields",
            f"{len(mapping.entries)}",
            "Compute less, or write several rules.",
        )
        return ()
    found: list[EmitField] = []
    for name, (place, node) in mapping.entries.items():
        if check_name(name, place, [field.name for field in found], shared, rule.report):
            field = (
                _read_declared(name, node, rule.report)
                if scope is None
                else _read_computed(name, node, rule.report, scope)
            )
            found += [] if field is None else [field]
    return tuple(found)


def check_name(name: str, place: Place, before: Sequence[str], shared: Sequence[str], report: Report) -> bool:
    """Tell whether a field may have a name; else that is reported.

    Args:
        name: the name.
        place: its place.
        before: the names of the fields before it.
        shared: the attributes of the rule's key, which are columns too.
        report: the report.
    """
    if not _NAME.fullmatch(name):
        report.add(place, "must be a name of letters, digits and _", quote(name), "Rename the field.")
    elif name.lower() in TAKEN_COLUMNS:
        report.add(place, "must not be a column that every match has", quote(name), "Choose another name.")
    elif name.lower() in [column_name(other).lower() for other in shared]:
        report.add(
            place,
            "must not be a column of partition_by",
            quote(name),
            "It is in the result already; choose another name.",
        )
    elif name.lower() in [other.lower() for other in before]:
        report.add(place, "must be a new name (letter case aside)", quote(name), "Rename one of the fields.")
    else:
        return True
    return False


def _read_declared(name: str, node: Node, report: Report) -> EmitField | None:
    kind = SCALARS.get(node.text.upper()) if isinstance(node, Scalar) else None
    if kind is None:
        advice = f"Use one of: {', '.join(TYPE_NAMES)}."
        report.add(node.place, "must be the type that the operator yields", describe(node), advice)
        return None
    return EmitField(name, kind, None)


def _scope(
    rule: Section, schema: EventSchema, pattern: Pattern | None, shared: tuple[str, ...]
) -> Scope | None:
    """The scope of the expressions in ``emit``; None for a Python operator, which has none."""
    opened = opens_span(rule)
    if is_machine(rule):
        return move_scope(schema)
    if pattern is None:
        if kind_of(rule) == "pattern":  # a wrong one, which was reported
            return event_scope(UNKNOWN_EVENTS)
        return span_scope(schema, shared, opened=opened) if kind_of(rule) == "aggregates" else None
    gathers = context_of(pattern).gathers
    either = pattern.order == "disjunction"
    names = OfMatches(schema, pattern.every, shared, True, opened, gathers, alternatives=either)
    return names.scope


def _read_computed(name: str, node: Node, report: Report, scope: Scope) -> EmitField | None:
    scalar = as_expression(node, report)
    if scalar is None:
        return None
    expr = compile_value(scalar, scope, report)
    return None if expr is None or expr.type == "NULL" else EmitField(name, expr.type, expr)


def check_columns(rules: Sequence[tuple[Rule, Place]], report: Report) -> None:
    """Report a column that two rules give another type or spelling; all rules write into one table."""
    seen: dict[str, tuple[str, str, str]] = {}
    for rule, place in rules:
        types = {field.name: field.type for field in rule.schema.fields}
        keys = [(column_name(name), types[name]) for name in rule.partition_by]
        for name, kind in [*keys, *((field.name, field.type) for field in rule.emit)]:
            other_name, other_kind, other_rule = seen.setdefault(name.lower(), (name, kind, rule.name))
            if (other_name, other_kind) != (name, kind):
                other = f"the rule {quote(other_rule)}"
                must = f"must give the column {other_name} the type {other_kind}, as {other} does"
                report.add(place, must, f"{name} {kind}", "All rules share one table; rename one field.")

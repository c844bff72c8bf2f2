"""What a rule means, part by part, as text: to tell whether it is still the rule that some state was made by.

The parts of a rule depend on nothing but the rule and the attributes that it uses: not on its description, not on
other rules, not on attributes that only others use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from spark_pace.core.expr import Aggregate, Column, Expr, walk
from spark_pace.core.expr.render import to_text
from spark_pace.core.plan.durations import show_duration, show_length
from spark_pace.core.plan.rule import GridSpan, Pattern, PredicateSpan, Rule, Span


def rule_parts(rule: Rule) -> dict[str, str]:
    """The parts of a rule by the names they have in a rule file; parts that it does not have are left out."""
    parts = _pattern_parts(rule.pattern) if rule.pattern is not None else {"operator": str(rule.operator)}
    if rule.span is not None:
        parts["span"] = _span_text(rule.span)
    if rule.filter is not None:
        parts["filter"] = to_text(rule.filter)
    if rule.partition_by:
        parts["partition_by"] = ", ".join(rule.partition_by)
    parts["merge"] = rule.merge
    fields = [
        f"{field.name} {field.type}" + (f" = {to_text(field.expr)}" if field.expr is not None else "")
        for field in rule.emit
    ]
    parts["emit"] = ", ".join(fields)
    schema = rule.schema
    used = used_attributes(rule)
    parts["schema"] = ", ".join(
        sorted(f"{field.name} {field.type}" for field in schema.fields if field.name in used)
    )
    parts["event_time"] = schema.event_time + (f" in {schema.time_unit}" if schema.time_unit else "")
    parts["tie_break"] = ", ".join(schema.tie_break)
    return {name: text for name, text in parts.items() if text}


def fingerprint(parts: Mapping[str, str]) -> str:
    """Equal for equal parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def used_attributes(rule: Rule) -> set[str]:
    """The attributes on which the rule's matches depend; a Python operator sees them all."""
    if rule.operator is not None:
        return {field.name for field in rule.schema.fields}
    used = attributes_of([*_predicates(rule), *expressions_over_matches(rule)])
    return {rule.schema.event_time, *rule.partition_by, *rule.schema.tie_break, *used}


def attributes_of(exprs: Iterable[Expr]) -> set[str]:
    """The attributes that expressions name."""
    used = {node.attribute for expr in exprs for node in walk(expr) if isinstance(node, (Column, Aggregate))}
    return {name for name in used if name is not None}


def expressions_over_matches(rule: Rule) -> list[Expr]:
    """The expressions that are computed behind the intake: all but predicates over a single event."""
    exprs = [field.expr for field in rule.emit if field.expr is not None]
    if rule.pattern is not None:
        exprs += [conjunct.expr for conjunct in rule.pattern.where]
    if isinstance(rule.span, PredicateSpan):
        exprs += rule.span.close_where
    return exprs


def _predicates(rule: Rule) -> list[Expr]:
    exprs = [rule.filter] if rule.filter is not None else []
    if rule.pattern is not None:
        exprs += [component.predicate for component in rule.pattern.components]
    if isinstance(rule.span, PredicateSpan):
        exprs += [rule.span.open, rule.span.close]
    return exprs


def _pattern_parts(pattern: Pattern) -> dict[str, str]:
    return {
        "pattern": "; ".join(
            f"{component.name}: {to_text(component.predicate)}" for component in pattern.components
        ),
        "where": "; ".join(to_text(conjunct.expr) for conjunct in pattern.where),
        "within": show_length(pattern.within) if pattern.within is not None else "",
        "context": str(pattern.context),
        "close": pattern.close,
    }


def _span_text(span: Span) -> str:
    if isinstance(span, PredicateSpan):
        closing = "; ".join(to_text(expr) for expr in (span.close, *span.close_where))
        return f"open {to_text(span.open)}, close {closing}, within {show_duration(span.within_us)}"
    if isinstance(span, GridSpan):
        return f"every {show_duration(span.every_us)}, size {show_duration(span.size_us)}"
    return f"every {span.every} events, size {span.size} events"

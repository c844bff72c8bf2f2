"""Splits a component's predicate into conditions on its event alone and conditions on other events.

The intake sees one event at a time, so it tests the conditions on the event alone. The others are tested
where the other events are at hand: the event that opened the span, and the events before it in the stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_pace.core.expr import Call, Column, Expr, Previous, conjunction, renamed, transform, walk
from spark_pace.core.plan.rule import Conjunct, CountSpan, Pattern, Rule, SessionSpan
from spark_pace.core.plan.shape import asks_for_neighbours

OPENING_EVENT = "open"  # the component in columns of the opening event


def mentions_open(expr: Expr) -> bool:
    """True if an expression reads an attribute of the event that opened the span."""
    return any(isinstance(node, Column) and node.component == OPENING_EVENT for node in walk(expr))


def of_its_event(predicate: Expr) -> Expr:
    """The part of a component's predicate about its event alone."""
    others = of_other_events(predicate)
    return conjunction([one for one in conjuncts(predicate) if one not in others]) if others else predicate


def of_other_events(predicate: Expr) -> tuple[Expr, ...]:
    """The conjuncts of a component's predicate that also read other events."""
    return tuple(one for one in conjuncts(predicate) if mentions_open(one) or mentions_previous(one))


def mentions_previous(expr: Expr) -> bool:
    """True if an expression reads an attribute of an earlier event, by ``prev``."""
    return any(isinstance(node, Previous) for node in walk(expr))


def earlier_columns(exprs: Iterable[Expr]) -> dict[str, Previous]:
    """The attributes of earlier events that expressions read, by the names of columns with their values."""
    return {node.column: node for expr in exprs for node in walk(expr) if isinstance(node, Previous)}


def conjuncts(expr: Expr) -> list[Expr]:
    """The conjuncts of a condition: the parts between its outermost ``and``."""
    if isinstance(expr, Call) and expr.function == "and":
        return [part for argument in expr.arguments for part in conjuncts(argument)]
    return [expr]


def named(expr: Expr, component: str) -> Expr:
    """The expression with what has no component's name as that of the event of one."""
    return renamed(expr, lambda own: component if own is None else own)


def opening_column(attribute: str) -> str:
    """The name of a column with the opening event's attribute for each event of a span."""
    return f"@open {attribute}"


def opening_attributes(pattern: Pattern) -> set[str]:
    """The attributes of the opening event that conditions over several components read."""
    nodes = (node for expr in pattern.over_several for node in walk(expr))
    return {node.attribute for node in nodes if isinstance(node, Column) and node.component == OPENING_EVENT}


def with_opening_columns(pattern: Pattern) -> Pattern:
    """The pattern with conditions that read attributes of the opening event as columns of any event."""

    def changed(conjuncts: Iterable[Conjunct]) -> tuple[Conjunct, ...]:
        return tuple(
            replace(
                one,
                expr=_from_columns(one.expr),
                stated=None if one.stated is None else _from_columns(one.stated),
            )
            for one in conjuncts
        )

    components = tuple(
        one if one.further is None else replace(one, further=_from_columns(one.further))
        for one in pattern.components
    )
    where, taking = changed(pattern.where), changed(pattern.taking)
    return replace(pattern, components=components, where=where, taking=taking)


def _from_columns(expr: Expr) -> Expr:
    def column(node: Expr) -> Expr | None:
        if not isinstance(node, Column) or node.component != OPENING_EVENT:
            return None
        return replace(node, attribute=opening_column(node.attribute))

    return transform(expr, column)


def others_count(rule: Rule) -> bool:
    """True if events that match no component count too: in windows, as neighbours, or in spans."""
    pattern = rule.pattern
    near = pattern is not None and asks_for_neighbours(pattern)
    within = None if pattern is None else pattern.within
    counts = within is not None and within.events is not None
    return counts or near or isinstance(rule.span, CountSpan | SessionSpan) or pattern is None

"""Splits a component's predicate into conditions, and finds what many predicates have in common.

The intake sees one event at a time, so it tests the conditions on the event alone. The others are tested
where the other events are at hand: the event that opened the span, and the events before it in the stream.

Predicates may have equal conjuncts, and a column that must equal a constant. If rules differ in a constant
(``id = 17 and etype = 'A'``), one lookup in the column finds the events of all these rules, and the rest of a
predicate is tested on the few events with its constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from spark_pace import ways
from spark_pace.core.expr import Call, Column, Expr, Literal, Previous, conjunction, renamed, transform, walk
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


_EXACT = ("BIGINT", "STRING", "TIMESTAMP", "DATE")  # types whose equal values have equal bits


@dataclass(frozen=True)
class Sought:
    """A predicate that holds only where a column has a constant.

    Attributes:
        number: its index in `Plan.predicates`.
        constant: the index of the constant in `Lookup.constants`.
        shared: the indices in `Lookups.shared` of conjuncts that must hold too.
        rest: the condition that must hold besides; None: nothing more.
    """

    number: int
    constant: int
    shared: tuple[int, ...]
    rest: Expr | None


@dataclass(frozen=True)
class Lookup:
    """The predicates that hold only where one column equals a constant; one lookup serves all of them.

    Attributes:
        column: the column.
        constants: the distinct constants, never null.
        sought: the predicates, each with the index of its constant.
    """

    column: Column
    constants: tuple[bool | int | float | str | None, ...]
    sought: tuple[Sought, ...]


@dataclass(frozen=True)
class Lookups:
    """How the predicates of a plan are evaluated.

    Attributes:
        columns: the lookups, one for each column.
        shared: conjuncts that many predicates share, which are tested once for all.
        others: the indices in `Plan.predicates` of predicates without a lookup, which are tested one by one.
    """

    columns: tuple[Lookup, ...]
    shared: tuple[Expr, ...]
    others: tuple[int, ...]


def lookups_of(predicates: Sequence[Expr]) -> Lookups:
    """Decide how to evaluate some predicates, each about a single event."""
    parts = [dict.fromkeys(conjuncts(predicate)) for predicate in predicates]
    often = Counter(part for one in parts for part in one)
    constants: dict[Column, dict[bool | int | float | str | None, int]] = {}
    for part in often:
        if (equality := _equality(part)) is not None:
            known = constants.setdefault(equality[0], {})
            known.setdefault(equality[1].value, len(known))
    sought: dict[Column, list[Sought]] = {}
    shared: dict[Expr, int] = {}
    others = []
    for number, one in enumerate(parts):
        found = [(part, pair) for part in one if (pair := _equality(part)) is not None]
        chosen = max(found, key=lambda each: len(constants[each[1][0]]), default=None)
        if chosen is None or not ways.is_looked_up(len(constants[chosen[1][0]])):
            others.append(number)
            continue
        part, (column, literal) = chosen
        left = [other for other in one if other != part]
        common = [other for other in left if ways.is_shared(often[other])]
        alike = tuple(shared.setdefault(other, len(shared)) for other in common)
        own = [other for other in left if other not in common]
        place = constants[column][literal.value]
        sought.setdefault(column, []).append(Sought(number, place, alike, conjunction(own) if own else None))
    columns = tuple(Lookup(column, tuple(constants[column]), tuple(one)) for column, one in sought.items())
    return Lookups(columns, tuple(shared), tuple(others))


def _equality(expr: Expr) -> tuple[Column, Literal] | None:
    """The column and the constant of ``column = constant``, for types in `_EXACT`; None for anything else."""
    if not isinstance(expr, Call) or expr.function != "=":
        return None
    left, right = expr.arguments
    if isinstance(left, Literal):
        left, right = right, left
    if not isinstance(left, Column) or not isinstance(right, Literal) or right.value is None:
        return None
    return (left, right) if left.type == right.type and left.type in _EXACT else None

"""Tests on the events before each event of a stream: of negated components in first place, and with ``prev``.

They are made once the events are in order, because only then an event's predecessors are known. An event that
fails one of a negated component in first place does not match the first component, whatever the context is.
Conditions with ``prev`` are those of components and moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_pace.core.expr import (
    ARROW_TYPES,
    Call,
    Column,
    Expr,
    Previous,
    conjunction,
    is_single,
    of_component,
    walk,
)
from spark_pace.core.plan.conditions import mentions_previous, of_other_events
from spark_pace.core.plan.meaning import attributes_of, expressions_over_matches, previous_of
from spark_pace.core.plan.members import conditions_by_bit
from spark_pace.core.plan.rule import Absence, Component, Conjunct, Context, Pattern, Rule, Within


@dataclass(frozen=True)
class AbsenceTest:
    """The test of one negated component in first place.

    Attributes:
        bit: its bit of ``@mask``.
        within_us: how long before the other event an event forbids; None: since its stream or span began.
        equal: pairs of expressions, the first over the event that forbids, the second over the event that it
            forbids. Their values are equal.
        steps: both events as a sequence, with the conditions that are left; None if `equal` says all.
        columns: the attributes of the event that forbids which these conditions read.
    """

    bit: int
    within_us: int | None
    equal: tuple[tuple[Expr, Expr], ...]
    steps: Pattern | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class AbsenceTests:
    """The tests of all negated components in first place of a rule.

    Attributes:
        tests: one for each.
        columns: the attributes in their conditions, in the schema's order.
        others_count: True if events that match no component are needed even after the test.
    """

    tests: tuple[AbsenceTest, ...]
    columns: tuple[str, ...]
    others_count: bool

    @property
    def lasting(self) -> bool:
        """True if one of the events forbids however long ago it was."""
        return any(test.within_us is None for test in self.tests)


def absence_tests(rule: Rule, *, others_count: bool) -> AbsenceTests | None:
    """The tests of the rule's negated components in first place; None if it has none.

    For a rule with a span operators make them, among the events of each span.
    """
    pattern = rule.pattern
    if pattern is None or not pattern.absences:
        return None
    first = pattern.components[0]
    tests = tuple(
        _test(absence, first, bit) for bit, absence in enumerate(pattern.absences, len(pattern.components))
    )
    used = attributes_of(expr for absence in pattern.absences for expr in absence.where)
    columns = tuple(field.name for field in rule.schema.fields if field.name in used)
    return AbsenceTests(tests, columns, others_count)


def _test(absence: Absence, first: Component, bit: int) -> AbsenceTest:
    name = absence.component.name
    pairs = {expr: equality_of(expr, name, first.name) for expr in absence.where}
    equal = tuple(pair for pair in pairs.values() if pair is not None)
    rest = [expr for expr, pair in pairs.items() if pair is None]
    if not rest:
        return AbsenceTest(bit, absence.within_us, equal, None, ())
    anything = conjunction([])
    steps = Pattern(
        (Component(name, anything), Component(first.name, anything)),
        tuple(Conjunct(expr, (0, 1)) for expr in rest),
        None if absence.within_us is None else Within(absence.within_us),
        Context("latest", "zero"),
    )
    nodes = (node for expr in rest for node in walk(expr))
    used = {node.attribute for node in nodes if isinstance(node, Column) and node.component == name}
    return AbsenceTest(bit, absence.within_us, equal, steps, tuple(sorted(used)))


def equality_of(expr: Expr, negated: str, first: str) -> tuple[Expr, Expr] | None:
    """The sides of ``=``, over an event of `negated` and over one of `first`; None for other conditions."""
    if not isinstance(expr, Call) or expr.function != "=":
        return None
    left, right = expr.arguments
    sides = {tuple(_named(left)): left, tuple(_named(right)): right}
    if sides.keys() != {(negated,), (first,)} or left.type != right.type or not is_single(left.type):
        return None
    return of_component(sides[negated,], None), of_component(sides[first,], None)


def _named(expr: Expr) -> Sequence[str | None]:
    return sorted({node.component or "" for node in walk(expr) if isinstance(node, Column)})


@dataclass(frozen=True)
class LookingBack:
    """The conditions and values with ``prev`` of a rule, made key by key once the events are in order.

    Attributes:
        conditions: (bit of ``@mask``, condition) for each component or move that has one with ``prev``.
        values: what conditions over several components, and fields, read by ``prev``: it is a column of each
            event.
        columns: the attributes in these conditions and values, in the schema's order.
        last: for each attribute in a ``prev`` the columns with its values in a key's last events: the last
            event, the one before it, and so on, as far back as any ``prev`` reaches.
        others_count: True if events that match no component are needed even after the test.
        before_filter: True if it is the filter that looks back, at events whether they pass it or not.
    """

    conditions: tuple[tuple[int, Expr], ...]
    values: tuple[Previous, ...]
    columns: tuple[str, ...]
    last: tuple[tuple[Previous, ...], ...]
    others_count: bool
    before_filter: bool = False

    @property
    def carried(self) -> pa.Schema:
        """The columns of `last`, as they are kept for each key."""
        every = [column for columns in self.last for column in columns]
        return pa.schema([(self.kept_as(column), ARROW_TYPES[column.type]) for column in every])

    def kept_as(self, column: Previous) -> str:
        """The name under which the values of a column of `last` are kept for each key."""
        return f"@filter {column.column}" if self.before_filter else column.column


def looks_back(rule: Rule) -> bool:
    """True if a condition or a field of a pattern, or a condition of a move, reads an earlier event."""
    return any(map(mentions_previous, (*rule.conditions, *expressions_over_matches(rule))))


def looking_back(rule: Rule, *, others_count: bool) -> LookingBack | None:
    """The conditions of the rule's components or moves on earlier events of the rule's stream.

    None if there are none, and for a rule with a span, where operators test the conditions inside each span.
    """
    if rule.span is not None or not looks_back(rule):
        return None
    tested = [(bit, of_other_events(condition)) for bit, condition in conditions_by_bit(rule)]
    conditions = tuple((bit, conjunction(parts)) for bit, parts in tested if parts)
    values = tuple(previous_of(expressions_over_matches(rule)).values())
    exprs = [*(condition for _, condition in conditions), *values]
    return LookingBack(conditions, values, _columns(rule, exprs), _last(exprs), others_count)


def filtering(rule: Rule, *, others_count: bool) -> LookingBack | None:
    """The filter, if it looks at earlier events: it is tested once the events are in order; else None."""
    if not filters_back(rule):
        return None
    assert rule.filter is not None
    exprs = [rule.filter]
    return LookingBack((), (), _columns(rule, exprs), _last(exprs), others_count, before_filter=True)


def filters_back(rule: Rule) -> bool:
    """True if the filter reads an earlier event."""
    return rule.filter is not None and mentions_previous(rule.filter)


def _columns(rule: Rule, exprs: Iterable[Expr]) -> tuple[str, ...]:
    """The attributes in these expressions, in the schema's order."""
    used = attributes_of(exprs)
    return tuple(field.name for field in rule.schema.fields if field.name in used)


def _last(exprs: Iterable[Expr]) -> tuple[tuple[Previous, ...], ...]:
    """`LookingBack.last` for these expressions."""
    found = [node for expr in exprs for node in walk(expr) if isinstance(node, Previous)]
    last = []
    for name in dict.fromkeys(node.attribute for node in found):
        of_name = [node for node in found if node.attribute == name]
        reach = max(node.back for node in of_name)
        last.append(tuple(Previous(name, back, of_name[0].type) for back in range(1, reach + 1)))
    return tuple(last)

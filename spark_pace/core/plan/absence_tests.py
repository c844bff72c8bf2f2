"""The tests of negated components in first place, on the events before each event of the rule's stream.

Like conditions with ``prev`` they are made once the events are in order. An event that fails one does not
match the first component, whatever the context is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_pace.core.expr import Call, Column, Expr, conjunction, is_single, of_component, walk
from spark_pace.core.plan.component import Component
from spark_pace.core.plan.meaning import attributes_of
from spark_pace.core.plan.rule import Absence, Conjunct, Context, Pattern, Rule, Within


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

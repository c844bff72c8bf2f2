"""Hypothesis strategies: negated components in first place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from spark_pace.core.expr import Call, Expr
from spark_pace.core.plan.rule import Absence, Component, Context, Pattern, Rule
from spark_pace.core.tables import MOST_COMPONENTS
from spark_pace.rules.pattern.components import with_bits
from tests.support.draws import built_once, chosen, composite, shuffled
from tests.support.form_strategies import Spans, changed, previous_conditions, rules_of
from tests.support.grouped_strategies import grouped_patterns, rare
from tests.support.strategies import CONTEXTS, column, condition, forgetful, number, patterns, predicates
from tests.support.streams import SECOND

ATTRIBUTES = ("k", "x", "x", "y", "z", "type")


@composite
def equalities(draw: st.DrawFn, negated: str, first: str) -> Expr:
    """Both events are equal in one attribute, or in what is computed of each."""
    attribute = chosen(draw, ATTRIBUTES)
    kind = chosen(draw, ["same", "same", "same", "other", "sum"])
    sides: list[Expr] = [column(attribute, name) for name in (negated, first)]
    if kind == "other":
        sides = [column("x", negated), column("y", first)]
    if kind == "sum":
        sides = [Call("+", (column("x", negated), number(1)), "BIGINT"), column("x", first)]
    return condition("=", *shuffled(draw, sides))


@composite
def other_conditions(draw: st.DrawFn, negated: str, first: str) -> Expr:
    """A condition on both events that is no equality, or hides one."""
    left, right = (column(chosen(draw, ["x", "y"]), name) for name in (negated, first))
    kind = chosen(draw, ["<", "<=", ">", "<>", "distance", "either", "sum"])
    if kind == "distance":
        distance = Call("abs", (Call("-", (left, right), "BIGINT"),), "BIGINT")
        return condition("<", distance, number(draw(st.integers(1, 2))))
    if kind == "either":
        return condition("or", condition("=", left, right), condition("is_null", left))
    if kind == "sum":
        return condition("<=", Call("+", (left, right), "BIGINT"), number(draw(st.integers(0, 3))))
    return condition(kind, left, right)


@built_once
def forbidding() -> st.SearchStrategy[Expr]:
    return predicates() | rare()


@built_once
def conditions(negated: str, first: str) -> st.SearchStrategy[Expr]:
    equal = equalities(negated, first)
    return st.one_of(equal, equal, other_conditions(negated, first))


@composite
def absences(draw: st.DrawFn, name: str, first: str, *, grouped: bool) -> Absence:
    """A negated component in front of the component `first`, which no condition compares with a group."""
    predicate = draw(forbidding())
    if draw(st.integers(0, 5)) == 0:
        predicate = changed(draw, predicate, previous_conditions())
    count = 0 if grouped else chosen(draw, [0, 1, 1, 1, 2])
    where = tuple(draw(conditions(name, first)) for _ in range(count))
    within_us = chosen(draw, [0, 1, 2, 2, 3, 5, 8, 100]) * SECOND
    return Absence(Component(name, predicate, negated=True), within_us, where)


def behind_absences(draw: st.DrawFn, plain: Pattern) -> Pattern:
    """The pattern with one or two negated components in front of its first one."""
    first = plain.components[0]
    names = ["m", "n"][: chosen(draw, [1, 1, 1, 2])]
    assume(_may_be_forbidden(plain) and len(plain.components) + len(names) <= MOST_COMPONENTS)
    grouped = first.times is not None
    return replace(plain, absences=tuple(draw(absences(name, first.name, grouped=grouped)) for name in names))


def _may_be_forbidden(pattern: Pattern) -> bool:
    """Whether the first component is not optional."""
    times = pattern.components[0].times
    return times is None or times.least > 0


@built_once
def patterns_to_stand_behind(context: Context, inside: bool) -> st.SearchStrategy[Pattern]:
    """Patterns of which half begin with no group."""
    grouped = grouped_patterns(context, in_span=inside)
    alone = grouped.filter(lambda pattern: pattern.components[0].times is None)
    return st.one_of(patterns(context, in_span=inside), alone, grouped.filter(_may_be_forbidden))


@composite
def absent_rules(draw: st.DrawFn, contexts: Sequence[Context] = CONTEXTS, spans: Spans = None) -> Rule:
    """A rule with negated components in first place; in spans, or where keys are forgotten, some for ever."""
    context, inside = chosen(draw, contexts), spans is not None
    plain = draw(patterns_to_stand_behind(context, inside))
    rule = rules_of(draw, behind_absences(draw, plain), spans)
    forgets = draw(st.integers(0, 2)) == 0
    if forgets:
        rule = draw(forgetful(rule))
    assert rule.pattern is not None
    some = tuple(
        replace(one, within_us=None) if _may_last(one, rule, forgets) and draw(st.booleans()) else one
        for one in rule.pattern.absences
    )
    return replace(rule, pattern=replace(rule.pattern, absences=some))


@st.composite
def with_absences(draw: st.DrawFn, plain: Rule) -> Rule:
    """The rule, if it is a sequence without a span, with negated components in first place."""
    pattern = plain.pattern
    assume(pattern is not None and plain.span is None and pattern.order == "sequence")
    assert pattern is not None
    assume(not pattern.components[0].members)
    behind = behind_absences(draw, pattern)
    every = with_bits([*behind.components, *(absence.component for absence in behind.absences)])
    return replace(plain, pattern=replace(behind, components=tuple(every[: len(behind.components)])))


def _may_last(absence: Absence, rule: Rule, forgets: bool) -> bool:
    """Whether it may forbid without a window."""
    return rule.span is not None or (forgets and all(map(is_equality, absence.where)))


def is_equality(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == "="

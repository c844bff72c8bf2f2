"""Hypothesis strategies: groups whose further events must meet a condition on what the group has so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Call, Expr, Literal, Previous
from spark_pace.core.expr.nodes import AggregateName, TypeName
from spark_pace.core.plan.rule import Context, Pattern, Rule
from tests.support.disjunction_strategies import with_disjunctions
from tests.support.draws import chosen, composite, some
from tests.support.ending_strategies import with_endings
from tests.support.form_strategies import COMPARISONS, Spans, opening, rules_of
from tests.support.grouped_strategies import grouped_patterns, of_all_values
from tests.support.strategies import ATTRIBUTES, CONTEXTS, column, condition, number

ENDS: tuple[AggregateName, ...] = ("last", "last", "last", "first")
EXTREMES: tuple[AggregateName, ...] = ("min", "max")
KINDS = (
    *("ends", "ends", "ends", "sum", "extreme", "avg", "count"),
    *("texts", "steps", "any", "prev", "case"),
)
OFTEN = (">=", "<=", ">=", ">", "<", "<>", "=")


def so_far(function: AggregateName, name: str, attribute: str, kind: TypeName | None = None) -> Aggregate:
    return Aggregate(function, name, attribute, kind or ATTRIBUTES[attribute])


def _calculated(draw: st.DrawFn, kind: str, name: str, attribute: str) -> Expr:
    """A condition on what is calculated of the events so far."""
    often = chosen(draw, OFTEN)
    if kind == "sum":
        total = Call("+", (so_far("sum", name, attribute, "BIGINT"), column("x", name)), "BIGINT")
        return condition(chosen(draw, ["<=", "<", "<>"]), total, number(draw(st.integers(1, 4))))
    if kind == "extreme":
        extreme = so_far(chosen(draw, EXTREMES), name, attribute, "BIGINT")
        return condition(often, column(attribute, name), extreme)
    if kind == "avg":
        own = Call("cast", (column(attribute, name),), "DOUBLE")
        return condition(chosen(draw, [">=", "<="]), own, so_far("avg", name, attribute, "DOUBLE"))
    return condition("<=", Aggregate("count", name, None, "BIGINT"), number(draw(st.integers(1, 3))))


@composite
def further_conditions(draw: st.DrawFn, name: str, *, opened: bool = False) -> Expr:
    """A condition on an event of the component and those that its group has before it."""
    often, attribute = chosen(draw, OFTEN), chosen(draw, ["x", "x", "x", "y"])
    kind = chosen(draw, [*KINDS, *["open"] * opened * 2])
    if kind in ("sum", "extreme", "avg", "count"):
        return _calculated(draw, kind, name, attribute)
    if kind == "texts":
        other = chosen(draw, ["type", "k", "id"])
        compared = chosen(draw, ["=", "<>", "<>"])
        return condition(compared, column(other, name), so_far(chosen(draw, ENDS), name, other))
    if kind == "steps":
        step = Call("-", (column(attribute, name), so_far("last", name, attribute)), "BIGINT")
        return condition("<=", Call("abs", (step,), "BIGINT"), number(draw(st.integers(0, 1))))
    if kind == "any":
        return condition(often, *chosen(draw, _of_other_kinds(name)))
    if kind == "prev":
        before = Previous(attribute, draw(st.integers(1, 2)), ATTRIBUTES[attribute], name)
        return condition(chosen(draw, COMPARISONS), so_far("last", name, "x"), before)
    if kind == "case":
        known = condition(often, column("x", name), so_far("last", name, "x"))
        return Call("coalesce", (known, Literal(True, "BOOLEAN")), "BOOLEAN")
    if kind == "open":
        return condition("<>", so_far("last", name, attribute), opening("x"))
    return condition(often, column(attribute, name), so_far(chosen(draw, ENDS), name, "x"))


def _of_other_kinds(name: str) -> list[tuple[Expr, Expr]]:
    """Aggregates that compiled code does not know, each with what it may be compared with."""
    found: list[tuple[Expr, Expr]] = []
    for one in of_all_values(name):
        found.append((one, number(1) if one.type == "BIGINT" else Literal(1.0, "DOUBLE")))
    return found


def with_further(draw: st.DrawFn, pattern: Pattern, *, opened: bool = False) -> Pattern:
    """The pattern with conditions of one or all of its groups on what they have so far."""
    groups = [index for index, one in enumerate(pattern.components) if one.times is not None]
    assume(groups)
    components = list(pattern.components)
    for index in sorted(some(draw, groups)):
        first = draw(further_conditions(components[index].name, opened=opened))
        if draw(st.integers(0, 3)) == 0:
            other = draw(further_conditions(components[index].name))
            first = condition(chosen(draw, ["and", "or"]), first, other)
        components[index] = replace(components[index], further=first)
    return replace(pattern, components=tuple(components))


@composite
def further_rules(
    draw: st.DrawFn,
    contexts: Sequence[Context] = CONTEXTS,
    spans: Spans = None,
    *,
    opened: bool = False,
) -> Rule:
    """A rule with a group whose further events must meet a condition on it; by chance with ends of groups.

    Args:
        draw: draws.
        contexts: the contexts to choose from.
        spans: the spans to stand in.
        opened: whether some conditions look at the event that opened the span.
    """
    pattern = draw(grouped_patterns(chosen(draw, contexts), in_span=spans is not None))
    pattern = with_further(draw, pattern, opened=opened)
    other = draw(st.integers(0, 5))
    if other == 0:
        pattern = with_disjunctions(draw, pattern)
    elif other < 3:
        pattern = with_endings(draw, pattern)
    return rules_of(draw, pattern, spans)

"""Hypothesis strategies: rules with disjunctions, in every place and form that takes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Previous
from spark_pace.core.plan.members import asked, disjunction, names_in, united
from spark_pace.core.plan.rule import Component, Conjunct, Context, EmitField, Member, Pattern, Rule
from spark_pace.core.plan.shape import in_turn, sequences_of
from spark_pace.core.tables import MOST_IN_OPENED_SPANS
from tests.support.draws import chosen, composite, some
from tests.support.form_strategies import (
    Spans,
    any_patterns,
    changed,
    open_conditions,
    previous_conditions,
    rules_of,
)
from tests.support.strategies import CONTEXTS, column, predicates


def called_by(expr: Expr, names: dict[str, str]) -> Expr:
    """The expression with other names of components."""
    if isinstance(expr, Column | Previous) and expr.component in names:
        return replace(expr, component=names[expr.component])
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(called_by(one, names) for one in expr.arguments))
    return expr


def members(
    draw: st.DrawFn, old: Component, bit: int, changes: Sequence[st.SearchStrategy[Expr]]
) -> Component:
    """A disjunction in place of a component, of two or three members."""
    found = []
    for number in range(chosen(draw, [2, 2, 2, 3])):
        predicate = old.predicate if not number and draw(st.booleans()) else draw(predicates())
        for change in changes:
            if draw(st.integers(0, 2)) == 0:
                predicate = changed(draw, predicate, change)
        found.append(Member(f"{old.name}{number}", predicate, bit + number))
    name = chosen(draw, [old.name, " or ".join(one.name for one in found)])
    return replace(disjunction(name, found), follows=old.follows)


def with_disjunctions(
    draw: st.DrawFn, pattern: Pattern, changes: Sequence[st.SearchStrategy[Expr]] = ()
) -> Pattern:
    """The pattern with a disjunction in one or two of its places; conditions name members or the place."""
    plain = [k for k, one in enumerate(pattern.components) if one.times is None and not one.negated]
    components, bit = list(pattern.components), len(pattern.components) + len(pattern.absences)
    for index in sorted(some(draw, plain, 1, 2)) if plain else []:
        components[index] = members(draw, pattern.components[index], bit, changes)
        bit += len(components[index].members)
    assume(bit <= MOST_IN_OPENED_SPANS)
    where = _named_anew(draw, pattern.conditions, pattern.components, components)
    if draw(st.booleans()):
        where = united(where, components)
    where += [one for each in sequences_of(pattern) for one in in_turn(components, each)]
    taking = _named_anew(draw, pattern.taking, pattern.components, components) if pattern.taking else ()
    return replace(pattern, components=tuple(components), where=tuple(where), taking=tuple(taking))


def _named_anew(
    draw: st.DrawFn,
    conjuncts: Sequence[Conjunct],
    before: Sequence[Component],
    components: Sequence[Component],
) -> list[Conjunct]:
    """The conditions as they are of disjunctions in place of some components, and of some members more."""
    where = list[Conjunct]()
    for conjunct in conjuncts:
        names = {}
        for old, new in zip(before, components, strict=True):
            if new.members:
                own = [new.name, *(member.name for member in new.members), new.members[0].name]
                names[old.name] = chosen(draw, own)
        where.append(asked(called_by(conjunct.expr, names), components))
        if draw(st.booleans()):
            where += of_others(where[-1], components, swapped=draw(st.booleans()))
    return where


def of_others(conjunct: Conjunct, components: Sequence[Component], *, swapped: bool) -> list[Conjunct]:
    """The condition on each other member of the first disjunction of which it names one.

    `swapped`: with the other one of two attributes of that member.
    """
    if conjunct.stated is None:
        return []
    named = names_in(conjunct.stated)
    lists = [[member.name for member in one.members] for one in components]
    first, names = next((name, names) for names in lists for name in names if name in named)
    told = with_other_attribute(conjunct.stated, first) if swapped else conjunct.stated
    return [asked(called_by(told, {first: name}), components) for name in names if name != first]


def with_other_attribute(expr: Expr, name: str) -> Expr:
    """The expression with x in place of a component's y, and the reverse."""
    if isinstance(expr, Column) and expr.component == name and expr.attribute in ("x", "y"):
        return replace(expr, attribute="y" if expr.attribute == "x" else "x")
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(with_other_attribute(one, name) for one in expr.arguments))
    return expr


def fields_of_members(pattern: Pattern) -> tuple[EmitField, ...]:
    """Something of each member: an attribute, or in *all, selected* aggregates."""
    found = []
    for component in pattern.components:
        for one in component.members:
            if pattern.context.selection == "all":
                found.append(
                    EmitField(f"{one.name}_n", "BIGINT", Aggregate("count", one.name, None, "BIGINT"))
                )
                found.append(EmitField(f"{one.name}_x", "BIGINT", Aggregate("sum", one.name, "x", "BIGINT")))
            else:
                found.append(EmitField(f"{one.name}_id", "STRING", column("id", one.name)))
                there = Call("is_null", (column("x", one.name),), "BOOLEAN")
                found.append(EmitField(f"{one.name}_no_x", "BOOLEAN", there))
    return tuple(found)


@composite
def disjunctive_rules(
    draw: st.DrawFn,
    contexts: Sequence[Context] = CONTEXTS,
    spans: Spans = None,
    *,
    conjunction: bool = False,
    earlier: bool = False,
    opened: bool = False,
) -> Rule:
    """A rule with one disjunction or two.

    Args:
        draw: draws.
        contexts: the contexts to choose from.
        spans: the spans to stand in.
        conjunction: whether the pattern is a conjunction where the context has them.
        earlier: whether some members look at events before.
        opened: whether some members look at the event that opened the span.
    """
    context = chosen(draw, contexts)
    plain = draw(any_patterns(context, in_span=spans is not None, conjunction=conjunction))
    changes = [previous_conditions()] * earlier + [open_conditions()] * opened
    pattern = with_disjunctions(draw, plain, changes)
    rule = rules_of(draw, pattern, spans)
    names = {field.name for field in rule.emit}
    emit = [replace(field, name=field.name.replace(" ", "_")) for field in rule.emit]
    assert len(names) == len(rule.emit)
    return replace(rule, emit=(*emit, *fields_of_members(pattern)))

"""Reads the key ``where``: conditions over components, some of which become part of a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_pace.core.expr import Aggregate, Expr, conjunction, renamed, walk
from spark_pace.core.plan.conditions import OPENING_EVENT, mentions_previous
from spark_pace.core.plan.earlier_tests import equality_of
from spark_pace.core.plan.members import (
    asked,
    asked_where_it_stands,
    disjunction,
    members_in,
    nameable,
    names_in,
    united,
)
from spark_pace.core.plan.rule import Absence, Component, Conjunct, EventSchema
from spark_pace.rules.document.document import Section
from spark_pace.rules.document.report import Place, Report, quote
from spark_pace.rules.expressions.compile import compile_parts
from spark_pace.rules.expressions.parsing import as_expression
from spark_pace.rules.expressions.scopes import OfMatches
from spark_pace.rules.pattern.places import Listed


def read_where(rule: Section, schema: EventSchema, listed: Listed, *, opened: bool) -> list[Conjunct]:
    """Read the conditions, in order, each with the components that it names; wrong ones are left out.

    `opened` is True if an event opens the rule's span. A condition about that event alone counts as one about
    the first component, of a disjunction that of each alternative.
    """
    scalar = as_expression(rule.node("where"), rule.report)
    if scalar is None:
        return []
    components = listed.components
    scope = OfMatches(schema, components, opened=opened).scope
    found = []
    for place, expr in compile_parts(scalar, scope, rule.report):
        conjunct = asked(expr, components)
        if not conjunct.components and OPENING_EVENT in names_in(expr):
            found += [replace(conjunct, components=(one[0],)) for one in listed.alternatives]
        elif conjunct.components:
            _check_negated([components[index] for index in conjunct.components], place, rule.report)
            _check_members(conjunct, components, place, rule.report)
            _check_alternatives(conjunct, listed, place, rule.report)
            _check_leading(rule, listed, expr, (conjunct.components, place))
            _check_optional_last(listed, conjunct, place, rule.report)
            found.append(conjunct)
        else:
            rule.report.add(
                scalar.place,
                "must be about components",
                quote(scalar.text),
                "Remove the condition that is always the same.",
            )
    return found


def _check_negated(named: Sequence[Component], place: Place, report: Report) -> None:
    names = [component.name for component in named if component.negated]
    if len(names) > 1:
        report.add(
            place,
            "must name at most one negated component",
            " and ".join(map(quote, names)),
            "An event forbids by itself: write a condition for each of them, joined by and.",
        )


def _check_members(conjunct: Conjunct, components: Sequence[Component], place: Place, report: Report) -> None:
    """Report a condition that names two members of one disjunction, of which one stands in a match."""
    named = members_in(conjunct, components)
    for component in components:
        names = [member.name for member in named if member in component.members]
        if len(names) > 1:
            report.add(
                place,
                "must name at most one component of a disjunction",
                " and ".join(map(quote, names)),
                "An event stands for one of them: write a condition for each of them, joined by and, or give "
                "the disjunction a name and write the condition with that.",
            )


def _check_alternatives(conjunct: Conjunct, listed: Listed, place: Place, report: Report) -> None:
    """Report a condition that names components of two alternatives, of which one is in a match."""
    if not any({*conjunct.components} <= {*one} for one in listed.alternatives):
        names = [quote(listed.components[index].name) for index in conjunct.components]
        report.add(
            place,
            "must name components of one alternative",
            " and ".join(names),
            "A match has the events of one alternative: write a condition for each of them, joined by and.",
        )


def _check_optional_last(listed: Listed, conjunct: Conjunct, place: Place, report: Report) -> None:
    """Report a condition that cannot say which event an optional component in last place takes."""
    last = listed.components[-1]
    if not _names_optional_last(conjunct, listed.components) or last.times is None:
        return
    negated = [one.name for one in listed.behind if one.negated and one.name in names_in(conjunct.expr)]
    if last.times.most != 1:
        report.add(
            place,
            "must not name a component that is optional in last place, unless its times is 0..1",
            f"{quote(last.name)}, times: {last.times}",
            "There is a match with and without its events, and such a condition says which one event it "
            "takes: write times: 0..1, say in its when which events are taken, or let its times begin at 1.",
        )
    elif negated:
        report.add(
            place,
            "must not name a negated component together with one that is optional in last place",
            f"{quote(negated[0])} and {quote(last.name)}",
            "What forbids a match is known before that event comes: write a condition for each of them.",
        )


def _names_optional_last(conjunct: Conjunct, components: Sequence[Component]) -> bool:
    """True if a condition names an optional component in last place."""
    times = components[-1].times
    named = conjunct.components[-1] == len(components) - 1
    return named and len(components) > 1 and times is not None and times.least == 0


def of_optional_last(
    components: Sequence[Component], conjuncts: Sequence[Conjunct]
) -> tuple[tuple[Conjunct, ...], tuple[Conjunct, ...]]:
    """The conditions that decide about matches; and those that name an optional component in last place."""
    taking = tuple(one for one in conjuncts if _names_optional_last(one, components))
    return tuple(one for one in conjuncts if one not in taking), taking


def _check_leading(rule: Section, listed: Listed, expr: Expr, where: tuple[Sequence[int], Place]) -> None:
    """Report a condition on a negated component in first place that names more than the one behind those."""
    (named, place), components, first = where, listed.components, len(listed.leading)
    leading = [index for index in named if index < first]
    if len(leading) != 1 or len(named) == 1:
        return
    before, behind = listed.leading[leading[0]], components[first].name
    name = before.component.name
    every = names_in(expr) - {name}
    others = [quote(one.name) for one in nameable(components) if one.name in every]
    if OPENING_EVENT in every:
        others.append(quote(OPENING_EVENT))
    if mentions_previous(expr):
        others.append("prev(...)")
    if components[first].times is not None:
        must = f"must name {quote(name)} alone, for {quote(behind)} stands for several events"
        do = "Each of these is forbidden by itself: leave the others out, or put one for one event between."
        rule.report.add(place, must, " and ".join(others), do)
    elif others != [quote(behind)]:
        must = (
            f"must name besides {quote(name)} only {quote(behind)}, the first component that is not negated"
        )
        do = "It forbids that one event, whatever else the match has: leave the others out of the condition."
        rule.report.add(place, must, " and ".join(others), do)
    elif before.within is None and not rule.has("span") and equality_of(expr, name, behind) is None:
        must = f"must be an equality of {quote(name)} and {quote(behind)}, as in {name}.x = {behind}.x"
        do = f"Other conditions need an end: add for example within: 30 d to {quote(name)}."
        rule.report.add(place, must, "another condition", do)


def absences_of(
    listed: Listed, components: Sequence[Component], conjuncts: Sequence[Conjunct]
) -> tuple[tuple[Absence, ...], tuple[Conjunct, ...]]:
    """The negated components in first place with their conditions; and the other conditions, renumbered."""
    first = len(listed.leading)
    absences = tuple(
        Absence(
            components[index],
            placed.within_us,
            tuple(one.expr for one in conjuncts if one.components[0] == index),
        )
        for index, placed in enumerate(listed.leading)
    )
    others = [one for one in conjuncts if one.components[0] >= first]
    behind = [tuple(index - first for index in one.components) for one in others]
    return absences, tuple(replace(one, components=k) for one, k in zip(others, behind, strict=True))


def assigned(
    components: Sequence[Component], conjuncts: Sequence[Conjunct]
) -> tuple[tuple[Component, ...], tuple[Conjunct, ...]]:
    """Add conditions to the predicates that they belong to; return the components and the other conditions.

    A condition about one component that stands for one event, or is negated, belongs to its predicate; so
    does one about the opening event alone. One about a disjunction belongs to its members' predicates.
    """
    complete = list(components)
    left = []
    for conjunct in conjuncts:
        index = conjunct.components[0]
        component = complete[index]
        if not _is_predicate(conjunct, component):
            left.append(conjunct)
            continue
        condition = _without_name(asked_where_it_stands(conjunct), component.name)
        if component.members:
            complete[index] = _narrowed(component, conjunct, condition)
        else:
            complete[index] = replace(component, predicate=conjunction([component.predicate, condition]))
    return tuple(complete), tuple(united(left, complete))


def _narrowed(component: Component, conjunct: Conjunct, condition: Expr) -> Component:
    """The disjunction with a condition more on the member that it names, or on all of them."""
    named = members_in(conjunct, [component]) or component.members
    members = [
        replace(one, predicate=conjunction([one.predicate, condition])) if one in named else one
        for one in component.members
    ]
    return replace(disjunction(component.name, members), follows=component.follows)


def _is_predicate(conjunct: Conjunct, component: Component) -> bool:
    """True if a condition belongs to the predicate of `component`, the first that it names."""
    if len(conjunct.components) > 1:
        return False
    return component.times is None or not any(isinstance(node, Aggregate) for node in walk(conjunct.expr))


def _without_name(expr: Expr, component: str) -> Expr:
    return renamed(expr, lambda own: None if own == component else own)

"""Reads the pattern of a rule: components, conditions over them, the window, the context, the strategy."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import replace

from spark_pace.core.expr import Aggregate, Expr, conjunction, renamed, walk
from spark_pace.core.match.contexts import CONTEXTS, MISNAMED, context_of
from spark_pace.core.match.contexts.contexts import (
    EACH_ZERO,
    ParameterContext,
    takes_optional_last,
    walks,
)
from spark_pace.core.match.contexts.earliest_selected import EARLIEST_SELECTED
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
from spark_pace.core.plan.rule import (
    Absence,
    Close,
    Component,
    Conjunct,
    EventSchema,
    Pattern,
    Strategy,
    Within,
)
from spark_pace.core.plan.shape import in_turn
from spark_pace.rules.document import Place, Report, Scalar, Section, describe, meant_by, nearest, quote
from spark_pace.rules.expressions.compile import compile_parts, read_condition
from spark_pace.rules.expressions.parsing import as_expression
from spark_pace.rules.expressions.scopes import OfMatches, event_scope
from spark_pace.rules.expressions.types import UNKNOWN_EVENTS
from spark_pace.rules.lengths import read_window
from spark_pace.rules.pattern.components import read_components
from spark_pace.rules.pattern.places import Listed
from spark_pace.rules.span import opens_span

STRATEGIES: tuple[Strategy, ...] = typing.get_args(Strategy)


def read_pattern(rule: Section, schema: EventSchema) -> Pattern | None:
    """Read the pattern from the keys pattern, where, within, contiguity, context, strategy and close.

    None if too much is wrong to go on.
    """
    context = read_context(rule)
    strategy, close = read_strategy(rule, context), _read_close(rule, context)
    within = read_window(rule.node("within"), rule.report)
    strict = rule.choice("contiguity", ("relaxed", "strict"), "relaxed") == "strict"
    opened = opens_span(rule)
    listed = read_components(rule, schema, opened=opened)
    if listed is None:
        read_condition(rule.node("where"), event_scope(UNKNOWN_EVENTS), rule.report)
        return None
    conjuncts = read_where(rule, schema, listed, opened=opened)
    first = len(listed.leading)
    complete, several = assigned(listed.components, conjuncts)
    absences, several = absences_of(listed, complete, several)
    several = (*several, *(one for each in listed.sequences for one in in_turn(complete, each)))
    several, taking = of_optional_last(complete[first:], several)
    if strict and not rule.has("within"):
        within = _implied(complete[first:])
    pattern = Pattern(
        complete[first:], several, within, context.value, close, "strict" if strict else "relaxed",
        listed.order, strategy, absences, taking,
    )  # fmt: skip
    _check_leading(rule, listed)
    _check_together(rule, pattern)
    over_several = any(len(one.components) > 1 and one.components[0] >= first for one in conjuncts)
    any_order = pattern.order != "sequence" and not listed.misspelt
    _check_within(rule, pattern, grows=over_several or any_order)
    check_strategy(rule, pattern)
    return pattern


def _check_within(rule: Section, pattern: Pattern, *, grows: bool) -> None:
    """Report that a pattern outside a span needs ``within``, if it has none.

    `grows`: it has a condition over several components, or is no sequence.
    """
    if rule.has("within") or pattern.within or (rule.has("span") and pattern.close != "window"):
        return
    context = context_of(pattern)
    forms = any(one.times or one.negated or one.follows == "strict" for one in pattern.components)
    why = "a selection could stay open, or grow, for ever"
    if context.why_within is not None:
        why = f'in the context "{context.value}" {context.why_within}'
    elif not (forms or grows or pattern.close == "window"):
        return
    do = f"Add for example within: 10 min, for {why}."
    rule.report.add(rule.place, 'must have the key "within"', "none", do)


def _check_together(rule: Section, pattern: Pattern) -> None:
    """Report values of context, close and contiguity that do not fit the components."""
    if pattern.order != "sequence":
        _check_plain(rule, pattern)
        return
    components, strict = pattern.components, pattern.contiguity == "strict"
    _check_optional_last(rule, pattern)
    grouped = any(component.times is not None for component in components)
    if pattern.close == "window" and context_of(pattern).window_may_close and grouped:
        rule.report.add(
            rule.key_place("close"),
            'must be "completion" in a pattern with repeated or optional components',
            '"window"',
            'Leave "close" out, or "times".',
        )
    if strict and any(component.follows == "strict" for component in components):
        rule.report.add(
            rule.key_place("contiguity"),
            'must be "relaxed" in a pattern with components that have "follows: strict"',
            '"strict"',
            "It says so of every component: leave one of the two out.",
        )
    if strict and any(component.negated for component in components):
        rule.report.add(
            rule.key_place("contiguity"),
            'must be "relaxed" in a pattern with negated components',
            '"strict"',
            "Between neighbours no event stands that could be forbidden: "
            'leave "contiguity" or the negated components out.',
        )


def _check_optional_last(rule: Section, pattern: Pattern) -> None:
    """Report a context in which no optional component may stand in last place, if one does."""
    last = pattern.components[-1]
    if takes_optional_last(context_of(pattern).way) or last.times is None or last.times.least > 0:
        return
    rule.report.add(
        rule.key_place("context"),
        'must be one with "zero", or "next, selected", with an optional component in last place',
        f"{quote(str(pattern.context))} and {quote(last.name)}",
        f"What a match uses up must be known while {quote(last.name)} may still come: use one of these, or "
        "let its times begin at 1.",
    )


def _check_leading(rule: Section, listed: Listed) -> None:
    """Report negated components in first place that would forbid for ever."""
    for placed in listed.leading:
        if placed.within is None and not rule.has("forget_key_after") and not rule.has("span"):
            rule.report.add(
                placed.place,
                'must have the key "within" in first place, or the rule "forget_key_after" or "span"',
                quote(placed.component.name),
                "What it forbids would be kept for ever: add for example within: 30 d to the component.",
            )


def _check_plain(rule: Section, pattern: Pattern) -> None:
    """Report values of context and contiguity that do not fit a conjunction, or a disjunction."""
    if pattern.order == "conjunction" and walks(context_of(pattern).way):
        rule.report.add(
            rule.key_place("context"),
            'must not be one with "next" in a conjunction',
            quote(str(pattern.context)),
            "It takes component after component, in the order in which they are listed: "
            'use for example "each, zero", or write a sequence.',
        )
    if pattern.contiguity == "strict":
        rule.report.add(
            rule.key_place("contiguity"),
            f'must be "relaxed" in a {pattern.order}',
            '"strict"',
            'Leave "contiguity" out, or write a sequence.',
        )


def _implied(components: Sequence[Component]) -> Within | None:
    """The window of a strict pattern without `within`: the most events of a match; None if not bounded."""
    most = [1 if component.times is None else component.times.most for component in components]
    known = [events for events in most if events is not None]
    return Within(events=sum(known)) if len(known) == len(most) else None


def read_context(fields: Section) -> ParameterContext:
    """Read the key ``context``; for a wrong one, the context that was probably meant, else *each, zero*."""
    node = fields.node("context")
    if node is None:
        return EACH_ZERO
    parts = [part.strip() for part in node.text.split(",")] if isinstance(node, Scalar) else []
    name, swapped = ", ".join(parts), ", ".join(reversed(parts))
    if name in CONTEXTS:
        return CONTEXTS[name]
    if swapped in CONTEXTS:
        name = swapped
    fields.report.add(node.place, "must be a parameter context", describe(node), _advice(name))
    return CONTEXTS.get(meant_by(name, tuple(CONTEXTS)) or "", EACH_ZERO)


def _advice(name: str) -> str:
    """What to write instead of a wrong context."""
    near = [known for known in CONTEXTS if known.startswith(name.partition(",")[0] + ", ")]
    return MISNAMED.get(name) or nearest(name, near or CONTEXTS)


def _read_close(rule: Section, context: ParameterContext) -> Close:
    if rule.choice("close", ("completion", "window"), "completion") == "completion":
        return "completion"
    if not context.window_may_close:
        report, place = rule.report, rule.key_place("close")
        report.add(
            place,
            'must be "completion" in this context',
            f'"window" with "{context.value}"',
            'Use context "each, zero", or leave "close" out.',
        )
    return "window"


def read_strategy(rule: Section, context: ParameterContext) -> Strategy | None:
    """Read the key ``strategy``; None if it is missing or wrong."""
    if not rule.has("strategy"):
        return None
    name = rule.choice("strategy", STRATEGIES, "")
    if context is not EARLIEST_SELECTED:
        place, must = rule.key_place("strategy"), 'must stand with context "earliest, selected"'
        do = "Leave it out: in other contexts there is one way."
        rule.report.add(place, must, f'"{context.value}"', do)
    return next((strategy for strategy in STRATEGIES if strategy == name), None)


def check_strategy(rule: Section, pattern: Pattern) -> None:
    """Report a strategy that would not give exactly the matches of the context."""
    if pattern.strategy is None:
        return
    got = ""
    if pattern.strategy != "merger_filter" and pattern.within and len(pattern.components) > 2:
        got = "three or more components within a window"
    if pattern.strategy != "merger_filter" and pattern.where:
        got = "a condition over several components"
    if pattern.contiguity == "strict":
        got = "strict contiguity"
    if any(component.follows == "strict" for component in pattern.components):
        got = "follows: strict"
    if pattern.order != "sequence":
        got = f"a {pattern.order}"
    if any(component.times or component.negated for component in pattern.components):
        got = "repeated, optional or negated components"
    if got:
        place, must = rule.key_place("strategy"), "must be exact for the pattern"
        do = "Leave it out: the rule finds its matches in a way that is."
        if got.startswith(("three", "a condition")):
            do = 'Leave it out, or use "merger_filter".'
        rule.report.add(place, must, f'"{pattern.strategy}" with {got}', do)


# ---------------------------------------------------------------- conditions over components


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
            _check_of_leading(rule, listed, expr, (conjunct.components, place))
            _check_of_optional_last(listed, conjunct, place, rule.report)
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


def _check_of_optional_last(listed: Listed, conjunct: Conjunct, place: Place, report: Report) -> None:
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


def _check_of_leading(rule: Section, listed: Listed, expr: Expr, where: tuple[Sequence[int], Place]) -> None:
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

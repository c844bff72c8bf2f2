"""Reads the pattern of a rule: its components, the conditions over them, the window and the context."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from spark_pace.core.match.contexts.context import takes_optional_last, walks
from spark_pace.core.plan.component import Component
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.core.plan.members import nameable, names_of
from spark_pace.core.plan.rule import EventSchema, Order, Pattern, Within
from spark_pace.core.plan.shape import in_turn
from spark_pace.rules.document.document import Listing, Mapping, Node, Scalar
from spark_pace.rules.document.report import Report, nearest, quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.expressions.parsing import check_syntax, conjuncts_of, parse_expression, start_of
from spark_pace.rules.pattern.components import read_components
from spark_pace.rules.pattern.places import Listed
from spark_pace.rules.pattern.selection import Selecting, check_strategy, read_selecting, why_within
from spark_pace.rules.pattern.where_conditions import absences_of, assigned, of_optional_last, read_where
from spark_pace.rules.span import opens_span


def read_pattern(rule: Section, schema: EventSchema) -> Pattern | None:
    """Read the pattern from the keys pattern, where, within, contiguity, context, strategy and close.

    None if too much is wrong to go on.
    """
    selecting = read_selecting(rule)
    opened = opens_span(rule)
    listed = read_components(rule, schema, opened=opened)
    if listed is None:
        check_syntax(rule, ("where", "emit"))
        return None
    order, components = listed.order, listed.behind
    _check_together(rule, listed, selecting)
    conjuncts = read_where(rule, schema, listed, opened=opened)
    first = len(listed.leading)
    over_several = any(len(one.components) > 1 and one.components[0] >= first for one in conjuncts)
    over_several |= _names_several(rule, components)
    within = _implied(components, selecting) or selecting.within
    if not rule.has("within") and within is None and not (rule.has("span") and selecting.close != "window"):
        context, close = selecting.context, selecting.close
        known = "sequence" if listed.misspelt else order
        why = why_within(context, components, close, order=known, over_several=over_several)
        if selecting.contiguity == "strict" and order == "sequence":
            why = "With times that have no upper bound, such as 2+, neighbours could be taken for ever"
        if why is not None:
            do = f"{why}; add for example within: 10 min."
            rule.report.add(rule.place, 'must have the key "within"', "none", do)
    complete, several = assigned(listed.components, conjuncts)
    absences, several = absences_of(listed, complete, several)
    several = (*several, *(one for each in listed.sequences for one in in_turn(complete, each)))
    value, contiguity = selecting.context.value, selecting.contiguity
    several, taking = of_optional_last(complete[first:], several)
    pattern = Pattern(
        complete[first:], several, within, value, selecting.close, contiguity, order, selecting.strategy,
        absences, taking,
    )  # fmt: skip
    check_strategy(rule, pattern)
    return pattern


def check_pattern_syntax(rule: Section) -> None:
    """Report what is wrong with pattern, where and emit, without knowing the attributes."""
    selecting = read_selecting(rule)
    listed = read_components(rule, None, opened=opens_span(rule))
    check_syntax(rule, ("where", "emit"))
    if listed is not None:
        _check_together(rule, listed, selecting)
        _check_prefixes(rule, listed.components)


def _check_prefixes(rule: Section, components: Sequence[Component]) -> None:
    """Report names in where and emit that begin with no component, without knowing the attributes."""
    names, keys = [component.name for component in nameable(components)], rule.node("partition_by")
    shared = [node.text.partition(".")[0] for node in _scalars(keys)]
    for scalar in (*_scalars(rule.node("where")), *_scalars(rule.node("emit"))):
        tree = parse_expression(scalar, Report())
        for column in () if tree is None else tree.find_all(exp.Column):
            prefix = column.parts[0].name
            if len(column.parts) > 1 and prefix not in (*names, *shared, OPENING_EVENT):
                place, must = scalar.at(start_of(column)), "must name a component"
                rule.report.add(place, must, quote(prefix), nearest(prefix, names))


def _scalars(node: Node | None) -> list[Scalar]:
    """The scalar that a node is, or those that it holds."""
    values = [value for _, value in node.entries.values()] if isinstance(node, Mapping) else [node]
    values = list(node.items) if isinstance(node, Listing) else values
    return [value for value in values if isinstance(value, Scalar)]


def _check_together(rule: Section, listed: Listed, selecting: Selecting) -> None:
    """Report values of context, close and contiguity that do not fit the components."""
    _check_leading(rule, listed)
    components = listed.behind
    if listed.order != "sequence":
        _check_plain(rule, listed.order, selecting)
        return
    _check_optional_last(rule, components, selecting)
    grouped = any(component.times is not None for component in components)
    if selecting.close == "window" and selecting.context.window_may_close and grouped:
        rule.report.add(
            rule.key_place("close"),
            'must be "completion" in a pattern with repeated or optional components',
            '"window"',
            'Leave "close" out, or "times".',
        )
    if selecting.contiguity == "strict" and any(component.follows == "strict" for component in components):
        rule.report.add(
            rule.key_place("contiguity"),
            'must be "relaxed" in a pattern with components that have "follows: strict"',
            '"strict"',
            "It says so of every component: leave one of the two out.",
        )
    if selecting.contiguity == "strict" and any(component.negated for component in components):
        rule.report.add(
            rule.key_place("contiguity"),
            'must be "relaxed" in a pattern with negated components',
            '"strict"',
            "Between neighbours no event stands that could be forbidden: "
            'leave "contiguity" or the negated components out.',
        )


def _check_optional_last(rule: Section, components: Sequence[Component], selecting: Selecting) -> None:
    """Report a context in which no optional component may stand in last place, if one does."""
    last = components[-1]
    if takes_optional_last(selecting.context.way) or last.times is None or last.times.least > 0:
        return
    rule.report.add(
        rule.key_place("context"),
        'must be one with "zero", or "next, selected", with an optional component in last place',
        f"{quote(str(selecting.context.value))} and {quote(last.name)}",
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


def _check_plain(rule: Section, order: Order, selecting: Selecting) -> None:
    """Report values of context and contiguity that do not fit a conjunction, or a disjunction."""
    if order == "conjunction" and walks(selecting.context.way):
        rule.report.add(
            rule.key_place("context"),
            'must not be one with "next" in a conjunction',
            quote(str(selecting.context.value)),
            "It takes component after component, in the order in which they are listed: "
            'use for example "each, zero", or write a sequence.',
        )
    if selecting.contiguity == "strict":
        rule.report.add(
            rule.key_place("contiguity"),
            f'must be "relaxed" in a {order}{" of sequences" if order == "disjunction" else ""}',
            '"strict"',
            'Leave "contiguity" out, or write a sequence.',
        )


def _implied(components: Sequence[Component], selecting: Selecting) -> Within | None:
    """The window that a strict pattern without `within` implies: the most events that a match can have.

    None if the pattern is not strict, has `within`, or does not bound the number of its events.
    """
    if selecting.contiguity != "strict" or selecting.says_within:
        return None
    most = [1 if component.times is None else component.times.most for component in components]
    known = [events for events in most if events is not None]
    return Within(events=sum(known)) if len(known) == len(most) else None


def _names_several(rule: Section, components: Sequence[Component]) -> bool:
    """True if a condition, correct or not, names several components."""
    node = rule.node("where")
    places = {name: one.name for one in components for name in names_of(one)}
    tree = parse_expression(node, Report()) if isinstance(node, Scalar) else None
    parts = [] if tree is None else conjuncts_of(tree)
    named = ({places.get(column.table, "") for column in part.find_all(exp.Column)} for part in parts)
    return any(len(some - {""}) > 1 for some in named)

"""Reads the pattern of a rule: components, conditions over them, the window, the context, the strategy."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass

from spark_pace.core.match.contexts import CONTEXTS, MISNAMED
from spark_pace.core.match.contexts.contexts import (
    EACH_ZERO,
    NEXT_SELECTED,
    ParameterContext,
    takes_optional_last,
    walks,
)
from spark_pace.core.match.contexts.earliest_selected import EARLIEST_SELECTED
from spark_pace.core.plan.rule import (
    Close,
    Component,
    Contiguity,
    EventSchema,
    Order,
    Pattern,
    Strategy,
    Within,
)
from spark_pace.core.plan.shape import in_turn
from spark_pace.rules.document.document import Scalar, Section, describe
from spark_pace.rules.document.report import meant_by, nearest, quote
from spark_pace.rules.expressions.compile import read_condition
from spark_pace.rules.expressions.scopes import event_scope
from spark_pace.rules.expressions.types import UNKNOWN_EVENTS
from spark_pace.rules.lengths import read_window
from spark_pace.rules.pattern.components import read_components
from spark_pace.rules.pattern.places import Listed
from spark_pace.rules.pattern.where_conditions import absences_of, assigned, of_optional_last, read_where
from spark_pace.rules.span import opens_span

STRATEGIES: tuple[Strategy, ...] = typing.get_args(Strategy)


def read_pattern(rule: Section, schema: EventSchema) -> Pattern | None:
    """Read the pattern from the keys pattern, where, within, contiguity, context, strategy and close.

    None if too much is wrong to go on.
    """
    selecting = read_selecting(rule)
    opened = opens_span(rule)
    listed = read_components(rule, schema, opened=opened)
    if listed is None:
        read_condition(rule.node("where"), event_scope(UNKNOWN_EVENTS), rule.report)
        return None
    order, components = listed.order, listed.behind
    _check_together(rule, listed, selecting)
    conjuncts = read_where(rule, schema, listed, opened=opened)
    first = len(listed.leading)
    over_several = any(len(one.components) > 1 and one.components[0] >= first for one in conjuncts)
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
    advice = MISNAMED.get(name) or nearest(name, near or CONTEXTS)
    if near or meant_by(name, tuple(CONTEXTS)) is not None:
        return advice
    return f'{advice} One alarm per incident: "{NEXT_SELECTED.value}".'


def why_within(
    context: ParameterContext,
    components: Sequence[Component],
    close: str,
    *,
    order: Order,
    over_several: bool,
) -> str | None:
    """The reason why a pattern outside a span needs ``within``; None if it needs none.

    Args:
        context: the parameter context.
        components: the components of the pattern.
        close: the value of the key ``close``.
        order: sequence, conjunction or disjunction.
        over_several: True if the pattern has a condition over several components.
    """
    if close == "window":
        return 'With "close: window" a selection stays open to the end of its window'
    if order == "conjunction":
        return "In a conjunction every event of a component opens a selection, which could stay open for ever"
    if order == "disjunction":
        return "In a disjunction of sequences what one alternative waits for could keep others open for ever"
    if components[-1].negated:
        return (
            "With a negated component in last place there must be an end until which none of its events comes"
        )
    if context.why_within is not None:
        return f'In the context "{context.value}" {context.why_within}'
    forms = {
        "a repeated or optional component": any(component.times is not None for component in components),
        "a negated component": any(component.negated for component in components),
        "follows: strict": any(component.follows == "strict" for component in components),
        "a condition over several components": over_several,
    }
    found = next((form for form, there in forms.items() if there), None)
    return None if found is None else f"With {found} a selection could stay open, and grow, for ever"


@dataclass(frozen=True)
class Selecting:
    """The keys context, strategy, close, within and contiguity.

    Attributes:
        context: the parameter context.
        strategy: how matches are found; None: in the best way.
        close: what closes a selection.
        within: the length of the window; None if it is missing or wrong.
        says_within: True if the key ``within`` is there.
        contiguity: says if other events may stand between those of a match.
    """

    context: ParameterContext
    strategy: Strategy | None
    close: Close
    within: Within | None
    says_within: bool
    contiguity: Contiguity


def read_selecting(rule: Section) -> Selecting:
    """Read these keys, with defaults for those that are missing or wrong."""
    context = read_context(rule)
    strategy = read_strategy(rule, context)
    close = _read_close(rule, context)
    within = read_window(rule.node("within"), rule.report)
    contiguity = rule.choice("contiguity", ("relaxed", "strict"), "relaxed")
    return Selecting(
        context,
        strategy,
        close,
        within,
        rule.has("within"),
        "strict" if contiguity == "strict" else "relaxed",
    )


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

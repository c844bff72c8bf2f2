"""Reads the keys that say which events a selection may use: context, strategy, close, within, contiguity."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass

from spark_pace.core.match.contexts import CONTEXTS, MISNAMED
from spark_pace.core.match.contexts.context import ParameterContext
from spark_pace.core.match.contexts.each_zero import EACH_ZERO
from spark_pace.core.match.contexts.earliest_selected import EARLIEST_SELECTED
from spark_pace.core.match.contexts.next_selected import NEXT_SELECTED
from spark_pace.core.plan.component import Component, Contiguity
from spark_pace.core.plan.rule import Close, Order, Pattern, Strategy, Within
from spark_pace.rules.document.document import Scalar, describe
from spark_pace.rules.document.report import meant_by, nearest
from spark_pace.rules.document.section import Section
from spark_pace.rules.lengths import read_window

STRATEGIES: tuple[Strategy, ...] = typing.get_args(Strategy)


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
    node = rule.node("within")
    within = None if node is None else read_window(node, rule.report)
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

"""Reads the key ``strategy``: how *earliest, selected* finds its matches. All strategies find the same."""

from __future__ import annotations

import typing

from spark_pace.core.match.contexts.context import ParameterContext
from spark_pace.core.match.contexts.earliest_selected import EARLIEST_SELECTED
from spark_pace.core.plan.rule import Pattern, Strategy
from spark_pace.rules.document.section import Section

STRATEGIES: tuple[Strategy, ...] = typing.get_args(Strategy)


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

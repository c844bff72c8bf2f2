"""Collects the facts about a row pattern (``match_recognize``)."""

from __future__ import annotations

from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.match.row_patterns.match_tests import tests_of
from spark_pace.core.plan.meaning import node_text
from spark_pace.core.plan.row_pattern import Condition, RowPattern
from spark_pace.core.plan.rule import Rule
from spark_pace.core.plan.time_units import show_events
from spark_pace.rules.explanation.facts import RowPatternFacts, VariableFacts
from spark_pace.rules.row_patterns.streams import longest

AT_ONCE, ON_THE_WAY = "for all events at once", "event by event, beside the match so far"


def row_pattern_facts(rows: RowPattern) -> RowPatternFacts:
    """The facts about a rule's row pattern."""
    names = [rows.variables[one] for one in rows.skip_variables]
    by_python = {one.variable for one in tests_of(rows) if not one.is_program}
    variables = tuple(
        VariableFacts(name, _tested(one, by_python=place in by_python))
        for place, (name, one) in enumerate(zip(rows.variables, rows.conditions, strict=True))
    )
    ahead = max([rows.beyond, *rows.ahead])
    return RowPatternFacts(
        pattern=node_text(rows.pattern, rows.variables),
        variables=variables,
        within=None if rows.within_us is None else canonical_duration(rows.within_us),
        then=" ".join([f"skip {rows.skip}", *([" or ".join(names)] if names else [])]),
        compiled=not by_python,
        before=rows.before,
        behind=ahead,
    )


def _tested(one: Condition, *, by_python: bool) -> str | None:
    if one.of_match:
        return ON_THE_WAY + ", by Python" * by_python
    return AT_ONCE if one.fixed else None


def kept_rows(rows: RowPattern) -> str:
    """The events that are carried, in words."""
    before = f", and {show_events(rows.before)} before it" if rows.before else ""
    return f"the events from the first one on at which a match may still begin{before}"


def bound_of_rows(rule: Rule, rows: RowPattern) -> str:
    """What bounds the carried events, in words."""
    key, length = " for each key" if rule.partition_by else "", longest(rows.pattern)
    if rows.within_us is not None:
        return f"the events of {canonical_duration(rows.within_us)}{key}"
    if length is not None:
        return f"{show_events(length)}{key}"
    assert rule.forget_key_after_us is not None
    gap = canonical_duration(rule.forget_key_after_us)
    return f"the events of a key with gaps of at most {gap}; add WITHIN to bound it more closely"


def growth_of_rows(rows: RowPattern) -> tuple[str, str]:
    """What grows fastest, and how it grows, in words."""
    if any(one.of_match for one in rows.conditions):
        return "tests", f"of ways through the pattern, {rows.most_steps:,} steps from one event at most"
    if rows.within_us is not None:
        return "tests", "their number × events of a window × size of the pattern, at most"
    return "tests", "their number × size of the pattern, at most"

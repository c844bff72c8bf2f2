"""Rules over rules: each level is evaluated on the whole stream of the matches below it.

The matches of a rule are events at their `matched_at`. Those of one time are in the order in which `from`
names the rules, then in the order of each rule's output. The events of the input, where they are read beside
matches, are in their own order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from spark_pace.core.plan.rule import Rule
from tests.oracle.matches import Match, evaluate
from tests.oracle.rules_stream import in_stream_order
from tests.oracle.stream import Event

TIES = ("place in from", "number")


class TooManyCandidates(Exception):
    """The oracle would have to look at more candidates than it may."""


def evaluate_levels(
    rules: Iterable[Rule], events: Sequence[Event], most: float = math.inf
) -> dict[str, list[Match]]:
    """All matches of these rules and of those that they read, by the names of the rules.

    Raises:
        TooManyCandidates: a rule over rules reads so many matches that they may make more than `most`.
    """
    found: dict[str, list[Match]] = {}

    def visit(rule: Rule) -> None:
        if rule.name in found:
            return
        for lower in rule.reads:
            if not lower.hands_on:
                visit(lower)
        read = over_matches(rule, found, events) if rule.reads else (rule, events)
        steps = 0 if rule.pattern is None else len(rule.pattern.components)
        if rule.reads and math.comb(len(read[1]), steps) > most:
            raise TooManyCandidates
        found[rule.name] = evaluate(*read)

    for rule in rules:
        visit(rule)
    return found


def over_matches(
    rule: Rule, found: dict[str, list[Match]], events: Sequence[Event]
) -> tuple[Rule, list[Event]]:
    """The rule with its order of events of one time, and the events that it reads."""
    names = [field.name for field in rule.schema.fields]
    read: list[Event] = []
    for place, lower in enumerate(rule.reads):
        if lower.hands_on:
            rows = [(event, handed_on(event)) for event in in_stream_order(lower, events)]
        else:
            rows = [
                (Event(match.matched_at, lower.name, number, {}), row_of(lower, match))
                for number, match in enumerate(found[lower.name])
            ]
        for number, (event, row) in enumerate(rows):
            told = dict.fromkeys(names) | row | dict(zip(TIES, (place, number), strict=True))
            read.append(replace(event, row=told))
    return replace(rule, schema=replace(rule.schema, tie_break=TIES)), read


def handed_on(event: Event) -> dict[str, Any]:
    return event.row | {"rule": "events", "opened_at": event.time, "matched_at": event.time}


def row_of(rule: Rule, match: Match) -> dict[str, Any]:
    times = {"opened_at": match.opened_at, "matched_at": match.matched_at}
    return {"rule": rule.name, **times, **(match.key or {}), **match.fields}

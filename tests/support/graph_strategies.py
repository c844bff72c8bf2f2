"""Hypothesis strategies: rules that read the matches of other rules, which may read others again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Column, Expr
from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.lower_rules import handing_on, match_schema, with_what_is_used
from spark_pace.core.plan.rule import (
    CountSpan,
    EmitField,
    EventSchema,
    GridSpan,
    Rule,
    Within,
)
from tests.oracle.levels import TooManyCandidates, evaluate_levels
from tests.oracle.matches import Match
from tests.oracle.stream import Event
from tests.support.drawn_rules import FORMS, any_rule, rules
from tests.support.draws import built_once, chosen, composite, shuffled, some
from tests.support.loaded_rules import ATTRIBUTES, FIELDS, TIES, loaded
from tests.support.streams import SECOND

MOST_CANDIDATES = 15_000  # that a rule over rules may make; the oracle looks at them again and again


def like_events(rule: Rule) -> Rule:
    """The rule with fields that its events have, so that rules over events can be drawn to read it."""
    kinds = {name: kind for name, kind in ATTRIBUTES.items() if name not in rule.partition_by}
    if rule.operator is not None:
        return replace(rule, operator="tests.support.operators:known", emit=declared({"id", "x"} & {*kinds}))
    if rule.function is not None:
        return rule
    names = [None]
    if rule.pattern is not None:
        names = [component.name for component in rule.pattern.components if not component.negated]
    fields = []
    for name, kind in kinds.items():
        component = names[0] if name in ("id", "x") else names[-1]
        fields.append(EmitField(name, kind, field_of(rule, component, name)))
    return replace(rule, emit=tuple(fields))


def declared(names: set[str]) -> tuple[EmitField, ...]:
    return tuple(EmitField(name, ATTRIBUTES[name], None) for name in sorted(names))


def field_of(rule: Rule, name: str | None, attribute: str) -> Expr:
    kind = ATTRIBUTES[attribute]
    if rule.fold is not None:
        return Column(None, attribute, kind)
    gathers = rule.pattern is None or rule.pattern.context.selection == "all"
    grouped = rule.pattern is not None and any(
        component.name == name and component.times for component in rule.pattern.components
    )
    if gathers or grouped:
        return Aggregate("last", name, attribute, kind)
    return Column(name, attribute, kind)


def evaluated(rules: list[Rule], events: list[Event]) -> dict[str, list[Match]]:
    """What the oracle finds; a graph for which it would take minutes is not looked at."""
    try:
        return evaluate_levels(rules, events, most=MOST_CANDIDATES)
    except TooManyCandidates:
        reject()


def in_time(rule: Rule) -> Rule:
    """The rule, so changed that others may read it: its matches go out a known time behind their events."""
    if delay_us(rule) is None:
        rule = replace(rule, merge="detection")
    forget_us = rule.forget_key_after_us  # no rule has a longer window
    if delay_us(rule) is None and isinstance(rule.span, CountSpan):
        size_us = 5 * SECOND
        forget_us = None if forget_us is None else max(size_us, forget_us)
        rule = replace(rule, span=GridSpan(2 * SECOND, size_us), forget_key_after_us=forget_us)
    elif delay_us(rule) is None and rule.pattern is not None:
        most_us = 5 * SECOND if forget_us is None else min(5 * SECOND, forget_us)
        rule = replace(rule, pattern=replace(rule.pattern, within=Within(time_us=most_us)))
    return rule


@built_once
def frequent() -> st.SearchStrategy[Rule]:
    """A rule with a match for each event, or nearly."""
    letters = st.sampled_from(["'a', 'b', 'c', 'd'", "'a', 'b', 'c'", "'a', 'b'", "'b', 'c'"])
    return letters.map(lambda types: loaded(f'pattern: {{sequence: [p: "type in ({types})"]}}'))


# of each attribute the functions by which a pane may give it on: they keep its type
OF_PANES: dict[str, tuple[Any, ...]] = {
    "time": ("first", "last", "min", "max"),
    "id": ("first", "last", "min"),
    "type": ("last", "last", "max"),
    "x": ("sum", "min", "max", "last", "last"),
    "y": ("sum", "min", "last", "last"),
    "k": ("first", "last", "max"),
    "z": ("sum", "avg", "stddev", "max"),
}


@composite
def pane_rules(draw: st.DrawFn) -> Rule:
    """A rule that aggregates windows on the grid, and gives on what its events have."""
    drawn = draw(rules("aggregates, grid span"))
    fields = []
    for name, kind in ATTRIBUTES.items():
        if name not in drawn.partition_by:
            function = chosen(draw, OF_PANES[name])
            fields.append(EmitField(name, kind, Aggregate(function, None, name, kind)))
    return replace(drawn, emit=tuple(fields))


PANE, FOLD, ANY, FREQUENT = "pane", "fold", "any", "frequent"
KINDS: dict[str, st.SearchStrategy[Rule]] = {
    PANE: pane_rules(),
    FOLD: rules(FORMS["fold"]).map(like_events),
    ANY: any_rule().map(like_events),
    FREQUENT: frequent().map(like_events),
}
# what the first rule is, and the first one that reads it
STARTS = [
    *[(FOLD, PANE), (PANE, FOLD), (PANE, PANE), (FOLD, FOLD), (ANY, PANE), (ANY, FOLD), (FREQUENT, PANE)],
    *[(ANY, ANY), (ANY, ANY), (FREQUENT, ANY)],
]
LATER = [ANY, ANY, ANY, PANE, PANE, FOLD, FREQUENT, FREQUENT]


@composite
def graphs(draw: st.DrawFn) -> list[Rule]:
    """Rules over one schema, in any order of the levels: of events, of matches, and of both."""
    schema = EventSchema(FIELDS, "time", chosen(draw, TIES))
    below, above = chosen(draw, STARTS)
    rules: list[Rule] = []
    for number in range(draw(st.integers(1, 2))):
        kind = below if number == 0 else chosen(draw, LATER)
        rules.append(in_time(replace(draw(KINDS[kind]), name=f"r{number}", schema=schema)))
    first = len(rules)
    for number in range(first, first + draw(st.integers(1, 3))):
        name, kind = f"r{number}", above if number == first else chosen(draw, LATER)
        lower = some(draw, rules, 1, 3)
        reads = [rules[0]] if number == first and ANY not in (below, above) else lower
        if draw(st.booleans()) or all(rule.function is not None for rule in reads):
            reads.insert(draw(st.integers(0, len(reads))), handing_on(name, schema))
        upper = replace(draw(KINDS[kind]), name=name, schema=match_schema(reads), reads=tuple(reads))
        rules.append(with_what_is_used(in_time(upper)))
    return shuffled(draw, rules)

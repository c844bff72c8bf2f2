"""Hypothesis strategies: rules that read the matches of other rules, which may read others again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Column, Expr
from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.lower_rules import handing_on, match_schema, with_what_is_used
from spark_pace.core.plan.rule import (
    Component,
    Context,
    CountSpan,
    EmitField,
    GridSpan,
    Pattern,
    Rule,
    Within,
)
from tests.support.aggregate_strategies import aggregate_rules
from tests.support.any_rule import any_rule
from tests.support.fold_strategies import fold_rules
from tests.support.strategies import ATTRIBUTES, schemas, typed
from tests.support.strategies import rule as plain_rule
from tests.support.streams import SECOND


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
    aggregates = rule.emit if rule.pattern is None and rule.fold is None else ()
    return replace(rule, emit=(*fields, *aggregates))


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


def in_time(rule: Rule) -> Rule:
    """The rule, so changed that others may read it: its matches go out a known time behind their events."""
    if delay_us(rule) is None:
        rule = replace(rule, merge="detection")
    if delay_us(rule) is None and isinstance(rule.span, CountSpan):
        rule = replace(rule, span=GridSpan(2 * SECOND, 5 * SECOND))
    elif delay_us(rule) is None and rule.pattern is not None:
        most_us = min(5 * SECOND, rule.forget_key_after_us or 5 * SECOND)
        rule = replace(rule, pattern=replace(rule.pattern, within=Within(time_us=most_us)))
    return rule


def pane_rules() -> st.SearchStrategy[Rule]:
    """A rule that keeps panes: it aggregates windows of time."""
    grids = st.sampled_from([(1, 1), (2, 2), (1, 3), (2, 5), (3, 4), (5, 2)])
    return aggregate_rules(grids.map(lambda grid: GridSpan(grid[0] * SECOND, grid[1] * SECOND)))


def frequent() -> st.SearchStrategy[Rule]:
    """A rule with a match for each event, or nearly."""
    return st.builds(
        lambda schema, letters: plain_rule(
            schema,
            Pattern((Component("p", typed(letters)),), (), None, Context("each", "zero")),
            None,
            None,
        ),
        schemas(),
        st.sampled_from(["abcd", "abc", "ab", "bc"]),
    )


def kind_of_rule(*kinds: st.SearchStrategy[Rule]) -> st.SearchStrategy[Rule]:
    """A rule of one of these kinds, each as often; by ``|`` those that are made of many come most often."""
    return st.sampled_from(kinds).flatmap(lambda kind: kind)


@st.composite
def graphs(draw: st.DrawFn) -> list[Rule]:
    """Rules over one schema, in any order of the levels: of events, of matches, and of both."""
    schema = draw(schemas())
    rules: list[Rule] = []
    for number in range(draw(st.integers(1, 2))):
        drawn = draw(kind_of_rule(frequent(), frequent(), any_rule(), fold_rules(), pane_rules()))
        rules.append(in_time(like_events(replace(drawn, name=f"r{number}", schema=schema))))
    for number in range(len(rules), len(rules) + draw(st.integers(1, 3))):
        name = f"r{number}"
        with_all = [rule for rule in rules if rule.function is None]
        reads = draw(
            st.lists(st.sampled_from(rules), unique_by=lambda rule: rule.name, min_size=1, max_size=3)
        )
        if draw(st.booleans()) or not {*map(id, reads)} & {*map(id, with_all)}:
            reads.insert(draw(st.integers(0, len(reads))), handing_on(name, schema))
        drawn = draw(kind_of_rule(any_rule(), any_rule(), frequent(), fold_rules(), pane_rules()))
        upper = replace(drawn, name=name, schema=match_schema(reads), reads=tuple(reads))
        rules.append(with_what_is_used(in_time(like_events(upper))))
    return draw(st.permutations(rules))

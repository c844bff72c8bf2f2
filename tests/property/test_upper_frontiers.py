"""How far rules over rules go on: to the first match of a lower rule that can still come, and no less far.

What can still come is what the oracle finds among the events so far as if no more came, and is not out yet.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, conjunction
from spark_pace.core.local_run import LocalRun
from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.lower_rules import match_schema
from spark_pace.core.plan.rule import Component, Context, EmitField, GridSpan, Pattern, Rule
from spark_pace.core.tables import NO_FRONTIER, UNKNOWN_TIME
from spark_pace.rules import load_rules
from tests.long.differential.choices import drawn, taken_with
from tests.oracle.levels import over_matches
from tests.oracle.matches import Match, evaluate
from tests.oracle.stream import Event
from tests.property.test_invariance import plan_of
from tests.property.test_levels_at_random import assert_all_equal, rules_input
from tests.support.checks import WIDE, is_out, told
from tests.support.drawn_rules import any_rule
from tests.support.drive import drive
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.graph_strategies import evaluated, graphs, in_time, like_events
from tests.support.results import from_oracle
from tests.support.streams import Arrival, Parallelism, arrivals, dense_streams, parallelisms
from tests.support.waiting_rules import waiting_rule

IN_A_SPAN = """
rules:
  - name: rule
    span: {open: type = 'a', close: type = 'd', within: 100 s}
    pattern:
      sequence:
        - a: type = 'a'
        - b: type = 'b'
        - {name: c, when: type = 'c', LAST}
    context: next, zero
"""
COUNT = EmitField("n", "BIGINT", Aggregate("count", None, None, "BIGINT"))


def reader(rule: Rule) -> Rule:
    every = Pattern((Component("p", conjunction([])),), (), None, Context("each", "zero"))
    return Rule("reader", match_schema([rule]), None, (), every, None, None, "detection", (), reads=(rule,))


def first_to_come(rule: Rule, events: Sequence[Event], frontier_us: int) -> int:
    """The time of the first match that can still come, as far as the events before the frontier say it."""
    if rule.operator is not None:  # what it makes of a span is known only when it is called
        rule = replace(rule, operator=None, emit=(COUNT,))
    seen = [event for event in events if event.time < frontier_us]
    waiting = [match for match in evaluate(rule, seen) if match.releasable[0] >= frontier_us]
    return min([next_time(rule, frontier_us), *(match.matched_at for match in waiting)])


def next_time(rule: Rule, frontier_us: int) -> int:
    """The least time of a match that is none yet: the frontier, or the next end of a window on the grid."""
    if rule.pattern is not None or not isinstance(rule.span, GridSpan):
        return frontier_us
    every, size = rule.span.every_us, rule.span.size_us
    ends = (k * every + size for k in itertools.count((frontier_us - size) // every - 1))
    return next(end for end in ends if end > frontier_us)


def exact(rule: Rule, arrival: Arrival) -> list[int | None]:
    """Behind each batch the time before which all matches are out; None where that is all."""
    events = arrival.on_time()[0]
    note("stream: " + ", ".join(map(told, events)))
    return [*(None if at is None else first_to_come(rule, events, at) for at in arrival.on_time()[2]), None]


def by_one(arrival: Arrival) -> Arrival:
    return replace(arrival, batches=tuple((event,) for batch in arrival.batches for event in batch))


@st.composite
def rules_that_wait(draw: st.DrawFn) -> Rule:
    """A rule that may be read and whose matches may wait: mostly of kinds of which many do."""
    if draw(st.integers(0, 3)):
        return in_time(like_events(waiting_rule(Random(draw(st.integers(0, 2**32 - 1))))))
    rule = in_time(like_events(replace(draw(any_rule()), merge="selection")))
    assume(delay_us(rule))
    return rule


DENSE = st.integers(9, 20).flatmap(dense_streams)


@st.composite
def with_waits(draw: st.DrawFn) -> tuple[Rule, Arrival]:
    """A rule and a stream of which a match waits behind some batch; one event, or several, in a batch."""
    rule, arrival = draw(rules_that_wait()), draw(arrivals(of=DENSE))
    arrival = by_one(arrival) if draw(st.booleans()) else arrival
    frontiers = [at for at in arrival.on_time()[2] if at is not None]
    matches = evaluate(rule, arrival.on_time()[0])
    assume(any(one.matched_at < at <= one.releasable[0] for one in matches for at in frontiers))
    return rule, arrival


@WIDE
@given(with_waits(), parallelisms(), st.integers(0, 2**32 - 1))
def test_a_rule_over_rules_goes_on_to_the_first_match_that_can_still_come_whichever_ways_are_taken(
    case: tuple[Rule, Arrival], spread: Parallelism, chance: int
) -> None:
    """Also with its state saved and restored between all batches."""
    rule, arrival = case
    plan, expected = plan_of([rule, reader(rule)], arrival, spread), exact(rule, arrival)
    local, found = LocalRun(plan), []
    with taken_with(drawn(Random(chance)), chance):
        for table in [*arrival.tables(rule), None]:
            local.step(table, finish=table is None)
            found.append(known(local.levels.out_before[rule.name]))
    assert found == expected
    steps = drive(plan, arrival.tables(rule), finish=True)
    assert [known(step.out_before[rule.name]) for step in steps] == expected


@pytest.mark.parametrize(
    ("last", "text", "expected"),
    [
        ("times: 0..1", "a1@0 a2@2 b1@3 c1@4 z1@5 d1@6 z2@7 z3@8", [0, 2, 3, 4, 4, 4, 7, 8, None]),
        ("not: true", "a1@0 a2@2 b1@3 z1@4 d1@6 z2@7 z3@8", [0, 2, 3, 4, 6, 7, 8, None]),
    ],
)
def test_a_match_that_may_still_change_has_no_time_while_the_end_of_its_span_is_not_known(
    last: str, text: str, expected: list[int | None]
) -> None:
    (rule,) = load_rules(f"events: {json.dumps(SCHEMA)}\n{IN_A_SPAN.replace('LAST', last)}")
    arrival = by_one(Arrival((parse_events(text),), 0))
    plan = plan_of([rule, reader(rule)], arrival, Parallelism(1, 1, 1))
    steps = drive(plan, arrival.tables(rule), finish=True)
    found = [known(step.out_before[rule.name]) for step in steps]
    assert found == [None if at is None else at * 1_000_000 for at in expected]


def known(out_us: int) -> int | None:
    return None if out_us in (NO_FRONTIER, UNKNOWN_TIME) else out_us


@given(graphs(), arrivals(of=DENSE), parallelisms(), st.booleans())
def test_a_match_of_any_level_goes_out_with_the_frontier_that_lets_it(
    rules: list[Rule], arrival: Arrival, spread: Parallelism, one_by_one: bool
) -> None:
    assert_each_goes_out_with_the_frontier(rules, by_one(arrival) if one_by_one else arrival, spread)


def assert_each_goes_out_with_the_frontier(rules: list[Rule], arrival: Arrival, spread: Parallelism) -> None:
    """After each batch just those matches are out that may be, and at the end all are."""
    events = arrival.on_time()[0]
    note("stream: " + ", ".join(map(told, events)))
    matches, so_far = evaluated(rules, events), list[pa.Table]()
    local = LocalRun(plan_of(rules, arrival, spread))
    for table in [*arrival.tables(rules_input(rules)), None]:
        step = local.step(table, finish=table is None)
        so_far.append(step.matches)
        reached = reached_by(rules, matches, events, UNKNOWN_TIME if table is None else step.frontier_us)
        expected = {
            rule.name: from_oracle(
                rule, [one for one in matches[rule.name] if is_out(one, reached[rule.name])]
            )
            for rule in rules
        }
        assert_all_equal(rules, expected, pa.concat_tables(so_far))


def reached_by(
    rules: list[Rule], matches: dict[str, list[Match]], events: list[Event], frontier_us: int
) -> dict[str, int]:
    """How far the events of each rule have come, be they matches or of the input."""
    reached: dict[str, int] = {}

    def of(rule: Rule) -> int:
        if rule.name not in reached:
            reached[rule.name] = min(map(out_before, rule.reads), default=frontier_us)
        return reached[rule.name]

    def out_before(lower: Rule) -> int:
        if of(lower) in (NO_FRONTIER, UNKNOWN_TIME) or lower.hands_on:
            return of(lower)
        return first_to_come(
            *(over_matches(lower, matches, events) if lower.reads else (lower, events)), of(lower)
        )

    for rule in rules:
        of(rule)
    return reached

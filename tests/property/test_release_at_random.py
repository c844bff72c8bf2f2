"""A match comes out once: in the batch whose frontier passes the place where it is releasable, or at the end.

All state is saved and restored between two batches, wherever these cut the stream.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Rule, Within
from spark_pace.core.tables import NO_FRONTIER, UNKNOWN_TIME
from tests.oracle.contexts import Event
from tests.support.checks import NARROW, WIDE, assert_out_in_time, noted_matches, plan_for
from tests.support.drawn_rules import FORMS, any_forgetful_rule, any_rule, rules
from tests.support.drive import drive
from tests.support.graph_strategies import like_events
from tests.support.loaded_rules import CONTEXTS, condition_of
from tests.support.results import table_of
from tests.support.streams import (
    SECOND,
    Arrival,
    Parallelism,
    arrivals,
    dense,
    dense_streams,
    parallelisms,
    sparse_or_dense,
    streams,
)
from tests.support.waiting_rules import forbidden_behind

PAUSE = "pause"
PAUSES = condition_of(f"type = '{PAUSE}'")


def check(rule: Rule, arrival: Arrival, spread: Parallelism) -> None:
    plan = plan_for([rule], OrderSpec(arrival.delay_us), spread)
    steps = list(drive(plan, arrival.tables(rule), finish=True))
    on_time, _, frontiers = arrival.on_time()
    expected = [NO_FRONTIER if at is None else at for at in frontiers]
    assert [step.frontier_us for step in steps] == [*expected, UNKNOWN_TIME]
    assert_out_in_time(rule, noted_matches(rule, on_time), steps)


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@pytest.mark.parametrize(
    "forms", ["plain", "plain, where", "plain, span", "plain, session span", "plain, forgotten keys"]
)
@given(data=st.data())
def test_a_pattern_comes_out_in_time(context: Context, forms: str, data: st.DataObject) -> None:
    check(data.draw(rules(forms, (context,))), data.draw(arrivals()), data.draw(parallelisms()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@pytest.mark.parametrize("forms", ["grouped", "grouped, span"])
@NARROW
@given(data=st.data())
def test_a_pattern_with_groups_or_negations_comes_out_in_time(
    context: Context, forms: str, data: st.DataObject
) -> None:
    check(
        data.draw(rules(forms, (context,))),
        data.draw(arrivals(of=sparse_or_dense())),
        data.draw(parallelisms()),
    )


@WIDE
@given(
    rules("plain, close window | grouped, close window | plain, close window, forgotten keys"),
    arrivals(),
    parallelisms(),
)
def test_a_selection_open_to_the_end_of_its_window_comes_out_in_time(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    check(rule, arrival, spread)


@pytest.mark.parametrize("span", ["opened span", "grid span", "count span", "session span"])
@pytest.mark.parametrize("inside", ["plain", "operator"])
@given(data=st.data())
def test_a_span_comes_out_in_time(span: str, inside: str, data: st.DataObject) -> None:
    forms = f"{inside}, {span} | {inside}, {span}, forgotten keys"
    check(data.draw(rules(forms)), data.draw(arrivals()), data.draw(parallelisms()))


@pytest.mark.parametrize("name", FORMS)
@NARROW
@given(data=st.data())
def test_a_form_of_rules_comes_out_in_time(name: str, data: st.DataObject) -> None:
    check(
        data.draw(rules(FORMS[name])),
        data.draw(arrivals(of=sparse_or_dense())),
        data.draw(parallelisms()),
    )


@WIDE
@given(
    rules(f"{FORMS['fold']} | moves, forgotten keys | function, forgotten keys"),
    arrivals(of=dense_streams()),
    parallelisms(),
)
def test_a_fold_comes_out_in_time(rule: Rule, arrival: Arrival, spread: Parallelism) -> None:
    check(rule, arrival, spread)


@WIDE
@given(any_forgetful_rule(), arrivals(), parallelisms())
def test_a_rule_that_forgets_keys_comes_out_in_time(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    check(rule, arrival, spread)


def counted(rule: Rule) -> Rule:
    """The rule with a window that the stream of a key seldom fills, in which matches wait for selections."""
    assert rule.pattern is not None
    return replace(rule, merge="selection", pattern=replace(rule.pattern, within=Within(events=9)))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_what_waits_for_a_window_of_events_goes_out_where_the_stream_ends(
    context: Context, data: st.DataObject
) -> None:
    rule = data.draw(rules("plain, where, forgotten keys", (context,)).map(counted))
    check(rule, data.draw(arrivals()), data.draw(parallelisms()))


@WIDE
@given(st.integers(0, 2**32 - 1), st.integers(12, 18), st.integers(1, 2))
def test_what_a_negated_component_behind_may_forbid_goes_out_when_that_is_known(
    seed: int, size: int, slots: int
) -> None:
    """As soon, in whatever batches: here with each event in one of its own."""
    random = Random(seed)
    rule, events = like_events(forbidden_behind(random)), dense(random, size)
    check(rule, Arrival(tuple((event,) for event in events), 0), Parallelism(slots, 2, 2 * slots - 1))


@given(any_rule(), streams(), st.data())
def test_what_waits_for_time_goes_out_in_pauses_too(
    drawn: Rule, events: list[Event], data: st.DataObject
) -> None:
    """Before some events a batch comes that only moves the frontier, up to the next event or far beyond."""
    rule = replace(drawn, partition_by=data.draw(st.sampled_from([drawn.partition_by, ("k",)])))
    batches, place = list[list[Event]](), 0
    while place < len(events):
        size = data.draw(st.integers(1, 4))
        batches.append(events[place : place + size])
        place += size
        if data.draw(st.booleans()):
            until = events[place].time if place < len(events) else events[-1].time + 50 * SECOND
            silent = {**events[-1].row, "time": until, "type": PAUSE}
            batches.append([Event(until, "s", len(events) + place, silent)])
    plan = build_plan(
        [rule], order=OrderSpec(), slots=data.draw(st.integers(1, 2)), buckets=2, heartbeat=PAUSES
    )
    steps = drive(plan, [table_of(rule, batch) for batch in batches], finish=False)
    assert_out_in_time(rule, noted_matches(rule, events), steps)

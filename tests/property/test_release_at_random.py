"""A match comes out once: in the batch whose frontier passes the place where it is releasable."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Rule
from tests.oracle.contexts import Event
from tests.support.checks import NARROW, WIDE, assert_equal, rows_and_releases
from tests.support.drawn_rules import FORMS, any_rule, rules
from tests.support.drive import drive
from tests.support.graph_strategies import like_events
from tests.support.loaded_rules import CONTEXTS, condition_of
from tests.support.results import brief, from_core, table_of
from tests.support.streams import SECOND, Arrival, arrivals, dense, dense_streams, streams
from tests.support.waiting_rules import forbidden_behind

PAUSE = "pause"
PAUSES = condition_of(f"type = '{PAUSE}'")


def check(rule: Rule, arrival: Arrival, slots: int) -> None:
    events = arrival.on_time()[0]
    everything, releases = rows_and_releases(rule, events)
    so_far: list[pa.Table] = []
    order, lanes = OrderSpec(arrival.delay_us), 2 * slots - 1
    plan = build_plan([rule], order=order, slots=slots, buckets=2, lanes=lanes, least_lane_rows=1)
    for step, frontier in zip(
        drive(plan, arrival.tables(rule), finish=False), arrival.on_time()[2], strict=True
    ):
        so_far.append(step.matches)
        expected = [
            row
            for row, release in zip(everything, releases, strict=True)
            if frontier is not None and release[0] < frontier
        ]
        note(f"frontier {frontier}: " + "; ".join(map(brief, from_core(rule, step.matches))))
        assert_equal(rule, expected, pa.concat_tables(so_far))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@NARROW
@given(data=st.data())
def test_a_pattern_with_groups_or_negations_has_given_what_is_releasable_below_the_frontier(
    context: Context, data: st.DataObject
) -> None:
    check(data.draw(rules("grouped", (context,))), data.draw(arrivals()), data.draw(st.integers(1, 2)))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_a_pattern_has_given_what_is_releasable_below_the_frontier(
    context: Context, data: st.DataObject
) -> None:
    check(data.draw(rules("plain", (context,))), data.draw(arrivals()), data.draw(st.integers(1, 2)))


@given(rules("plain, close window"), arrivals())
def test_a_selection_open_to_the_end_of_its_window_has_given_what_is_releasable_below_the_frontier(
    rule: Rule, arrival: Arrival
) -> None:
    check(rule, arrival, 1)


@pytest.mark.parametrize("span", ["opened span", "grid span", "count span"])
@pytest.mark.parametrize("inside", ["plain", "operator"])
@given(data=st.data())
def test_a_span_has_given_what_is_releasable_below_the_frontier(
    span: str, inside: str, data: st.DataObject
) -> None:
    check(data.draw(rules(f"{inside}, {span}")), data.draw(arrivals()), data.draw(st.integers(1, 2)))


@pytest.mark.parametrize("name", FORMS)
@NARROW
@given(data=st.data())
def test_a_form_of_rules_has_given_what_is_releasable_below_the_frontier(
    name: str, data: st.DataObject
) -> None:
    check(
        data.draw(rules(FORMS[name])), data.draw(arrivals(of=dense_streams())), data.draw(st.integers(1, 2))
    )


@WIDE
@given(st.integers(0, 2**32 - 1), st.integers(12, 18), st.integers(1, 2))
def test_what_a_negated_component_behind_may_forbid_goes_out_when_that_is_known(
    seed: int, size: int, slots: int
) -> None:
    """As soon, in whatever batches: here with each event in one of its own."""
    random = Random(seed)
    rule, events = like_events(forbidden_behind(random)), dense(random, size)
    check(rule, Arrival(tuple((event,) for event in events), 0), slots)


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
    everything, releases = rows_and_releases(rule, events)
    plan = build_plan(
        [rule], order=OrderSpec(), slots=data.draw(st.integers(1, 2)), buckets=2, heartbeat=PAUSES
    )
    tables = [table_of(rule, batch) for batch in batches]
    so_far: list[pa.Table] = []
    for step in drive(plan, tables, finish=False):
        so_far.append(step.matches)
        expected = [
            row for row, release in zip(everything, releases, strict=True) if release[0] < step.frontier_us
        ]
        assert_equal(rule, expected, pa.concat_tables(so_far))

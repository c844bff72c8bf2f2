"""Keys that are forgotten: matches are the oracle's and go out in time; what is known is of live keys."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Rule, Within
from spark_pace.core.split.carry.carry import Wanted
from spark_pace.core.split.carry.examined_keys import Forgetting
from spark_pace.core.split.snapshot import load
from spark_pace.core.tables import NO_FRONTIER
from tests.oracle.contexts import Event
from tests.oracle.rules_stream import end_of, in_stream_order, keyed_streams
from tests.support.checks import WIDE, assert_equal, check, rows_and_releases
from tests.support.drawn_rules import any_forgetful_rule, rules
from tests.support.drive import drive
from tests.support.loaded_rules import CONTEXTS
from tests.support.streams import Arrival, Parallelism, arrivals, parallelisms, streams


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_a_pattern_gives_the_oracles_matches(context: Context, data: st.DataObject) -> None:
    check(data.draw(rules("plain, forgotten keys", (context,))), data.draw(streams()))


@given(rules("plain, close window, forgotten keys"), streams())
def test_a_selection_open_to_the_end_of_its_window_gives_the_oracles_matches(
    rule: Rule, events: list[Event]
) -> None:
    check(rule, events)


@pytest.mark.parametrize("inside", ["plain", "operator"])
@pytest.mark.parametrize("span", ["opened span", "grid span", "count span"])
@given(data=st.data())
def test_a_span_gives_the_oracles_matches(span: str, inside: str, data: st.DataObject) -> None:
    check(data.draw(rules(f"{inside}, {span}, forgotten keys")), data.draw(streams()))


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
    goes_out_in_time(rule, data.draw(arrivals()), data.draw(parallelisms()), data.draw(st.booleans()))


@WIDE
@given(any_forgetful_rule(), arrivals(), parallelisms(), st.booleans())
def test_each_batch_gives_what_its_frontier_makes_releasable(
    rule: Rule, arrival: Arrival, spread: Parallelism, finish: bool
) -> None:
    goes_out_in_time(rule, arrival, spread, finish)


def goes_out_in_time(rule: Rule, arrival: Arrival, spread: Parallelism, finish: bool) -> None:
    """The state is saved and restored between all batches."""
    order = OrderSpec(arrival.delay_us)
    plan = build_plan(
        [rule], order=order, slots=spread.slots, buckets=spread.buckets, lanes=spread.lanes, least_lane_rows=1
    )
    events = arrival.on_time()[0]
    everything, releases = rows_and_releases(rule, events)
    so_far: list[pa.Table] = []
    for step in drive(plan, arrival.tables(rule), finish=finish):
        so_far.append(step.matches)
        expected = [
            row for row, release in zip(everything, releases, strict=True) if release[0] < step.frontier_us
        ]
        assert_equal(rule, expected, pa.concat_tables(so_far))


@WIDE
@given(any_forgetful_rule(), arrivals())
def test_after_each_batch_only_live_keys_are_known(rule: Rule, arrival: Arrival) -> None:
    """A key is alive until the frontier is more than `forget_key_after` behind its last event."""
    plan = build_plan([rule], order=OrderSpec(arrival.delay_us))
    local = LocalRun(plan)
    after_us = rule.forget_key_after_us
    assert after_us is not None
    seen: list[Event] = []
    for batch, table in zip(arrival.batches, arrival.tables(rule), strict=True):
        frontier_us = local.step(table).frontier_us
        seen += batch
        released = [event for event in seen if event.time < frontier_us]
        known = dict(keyed_streams(rule, in_stream_order(rule, released)))
        alive = {key: stream for key, stream in known.items() if end_of(rule, stream)[0] >= frontier_us}
        _, ((_, carry),) = load(plan, 0, local.splitters[0].snapshot())
        assert carry.keys == len(alive)
        assert alive or not carry.chunks
        assert frontier_us > NO_FRONTIER or not known
        wanted = Wanted(Forgetting(after_us, frontier_us, frontier_us))
        touched = carry.find(pa.array(list(known), pa.string()), wanted)
        assert touched.new == len(known) - len(alive)
        assert touched.next_seq.tolist() == [len(alive.get(key, ())) for key in known]

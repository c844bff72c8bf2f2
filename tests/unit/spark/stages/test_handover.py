"""Where lanes are worked off: in the splitter's task while they are cheap, else by the operators' stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.frames import decode_header
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.merger import merge
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.price import Price
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.core.split.task import Lane
from spark_pace.io.event_files import table_events
from spark_pace.rules import load_rules
from spark_pace.spark.stages.operators import Handover
from spark_pace.spark.stages.rows import LANE, RESULT, WORK, Row
from spark_pace.ways import HERE_SECONDS

EVENTS = 60_000
HEAD = 'events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}'
PAIR = "pattern: {sequence: [{a: x = 1}, {b: x = 2}]}, within: 10 s"
RULES = {
    "plain": f"{{name: plain, {PAIR}}}",
    "all": f"{{name: all, {PAIR}, context: 'all, selected', emit: {{n: COUNT(b)}}}}",
    "where": f"{{name: where, {PAIR}, where: a.time < b.time}}",
    "strict": f"{{name: strict, {PAIR}, contiguity: strict}}",
    "conjunction": "{name: conj, pattern: {conjunction: [{a: x = 1}, {b: x = 2}]}, within: 10 s}",
    "operator": (
        "{name: operator, span: {every: 10 s, size: 20 s}, operator: 'tests.spark.jobs:total', "
        "emit: {total: BIGINT, events_in_span: BIGINT}}"
    ),
}


def plan_of(*names: str, bound_us: int | None = None) -> Plan:
    return build_plan(
        load_rules("\n".join([HEAD, "rules:", *(f"  - {RULES[name]}" for name in names)])),
        order=OrderSpec(),
        lanes=2,
        latency_bound_us=bound_us,
    )


def lanes_of(plan: Plan, count: int = EVENTS) -> list[Lane]:
    """The lanes of events in pairs, a second apart, that end with their batch."""
    x = np.tile([1, 2], count // 2)
    table = pa.table({"time": pa.array(np.arange(count) * 1_000_000).cast(pa.timestamp("us")), "x": x})
    events = table_events(table, plan.schema, "s").events.combine_chunks()
    splitter = SlotSplitter(plan, 0)
    sifted = sift(plan, events, Past(splitter.frontier_us))
    frames = [frame for _, frame in pack(plan, sifted.events)]
    return splitter.advance(frames, replace(sifted.progress, finish=True), lambda lane: lane).lanes


def rows_of(plan: Plan, lanes: list[Lane], prices: Mapping[int, Price] | None = None) -> list[Row]:
    handover = Handover(plan, prices or {}, HERE_SECONDS)
    for lane in lanes:
        handover.take(lane)
    return handover.rows(1, 3)


def is_here(plan: Plan, lanes: list[Lane], prices: Mapping[int, Price] | None = None) -> bool:
    """Whether lanes are worked off at once; either all of them are, or none."""
    kinds = [kind for _, kind, _ in rows_of(plan, lanes, prices)]
    assert kinds in ([RESULT, WORK] * len(lanes), [LANE] * len(lanes))
    return LANE not in kinds


@pytest.mark.parametrize("name", RULES)
def test_only_plain_patterns_of_many_events_are_worked_off_before_anything_was_measured(name: str) -> None:
    plan = plan_of(name)
    assert is_here(plan, lanes_of(plan)) == (name == "plain")
    assert is_here(plan, lanes_of(plan, 40)) == (name != "operator")


@pytest.mark.parametrize("name", ["plain", "where", "operator"])
def test_what_was_measured_counts(name: str) -> None:
    plan = plan_of(name)
    lanes = lanes_of(plan)
    weight = sum(lane.header.weight for lane in lanes)
    assert is_here(plan, lanes, {0: Price(0, 0.9 * HERE_SECONDS / weight)}) == (name != "operator")
    assert not is_here(plan, lanes, {0: Price(0, 1.1 * HERE_SECONDS / weight)})


def test_with_a_bound_nothing_longer_is_worked_off_here() -> None:
    prices = {0: Price(0, 0.5 * HERE_SECONDS / EVENTS)}
    for bound, here in ((HERE_SECONDS, True), (0.1 * HERE_SECONDS, False)):
        plan = plan_of("plain", bound_us=int(1e6 * bound))
        assert is_here(plan, lanes_of(plan), prices) == here


def test_all_lanes_of_a_slot_count_together_and_go_out_in_their_order() -> None:
    plan = plan_of("plain", "where")
    lanes = lanes_of(plan)
    assert [lane.header.rule_index for lane in lanes] == [0, 0, 1, 1]
    rows = rows_of(plan, lanes)
    assert [(part, kind) for part, kind, _ in rows] == [(part, LANE) for part in (1, 2, 0, 1)]
    headers = [decode_header(body) for _, _, body in rows]
    assert [(header["rule_index"], header["number"]) for header in headers] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


@pytest.mark.parametrize("name", ["plain", "where"])
def test_the_result_is_the_same_here(name: str) -> None:
    plan = plan_of(name)
    lanes = lanes_of(plan, 400)
    here = [decode_result(body) for _, kind, body in rows_of(plan, lanes) if kind == RESULT]
    expected = merge(plan, [result for lane in lanes for result in work_off(plan, lane)], {})
    assert merge(plan, here, {}).matches.equals(expected.matches)
    assert expected.matches.num_rows == 200

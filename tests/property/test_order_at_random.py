"""Many sources: frontier, late events, heartbeats, repeats and matches are as if read one by one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.expr import Expr
from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.tables import NO_FRONTIER, UNKNOWN_TIME
from tests.oracle.contexts import Event
from tests.oracle.expressions import Bindings, holds
from tests.oracle.order import Reading, read
from tests.support.checks import WIDE, assert_equal, expected_rows, plan_for
from tests.support.drawn_rules import any_rule
from tests.support.draws import chosen, composite
from tests.support.drive import drive
from tests.support.loaded_rules import ATTRIBUTES, condition_of
from tests.support.results import micros
from tests.support.streams import SECOND, Arrival, Parallelism, arrivals, parallelisms


@dataclass(frozen=True)
class Setting:
    """How a job treats its records."""

    spec: OrderSpec
    source_column: str | None
    heartbeat: Expr | None

    def plan(self, rule: Rule, spread: Parallelism) -> Plan:
        how = {"source_column": self.source_column, "heartbeat": self.heartbeat}
        return plan_for([rule], self.spec, spread, **how)

    def read(self, rule: Rule, arrival: Arrival) -> Reading:
        return read(rule, arrival.batches, self.spec, self.source_of(), self.beats)

    def source_of(self) -> Callable[[Event], str | None]:
        name = self.source_column
        if name is None:
            return lambda event: event.source
        return lambda event: None if event.row[name] is None else str(event.row[name])

    def beats(self, event: Event) -> bool:
        return self.heartbeat is not None and holds(self.heartbeat, Bindings(event=event.row))


@composite
def settings(draw: st.DrawFn) -> Setting:
    by_source = chosen(draw, [True, True, True, False])
    seconds = st.sampled_from([0, 1, 2, 4, 8])
    spec = OrderSpec(
        delay_us=draw(seconds) * SECOND,
        by_source=by_source,
        idle_after_us=draw(st.none() | seconds.map(lambda s: s * SECOND)) if by_source else None,
        expected_sources=chosen(draw, [(), ("s", "t"), ("u",), ("1", "2"), ("t", "z")]) if by_source else (),
        deduplicate_on=chosen(draw, [(), (), ("x",), ("type", "k"), ("y", "x"), ("id",)]),
    )
    beats = chosen(draw, [None, None, condition_of("type = 'd'"), condition_of("x = 1")])
    return Setting(spec, chosen(draw, [None, "k", "x"]) if by_source else None, beats)


def told_as(event: Event) -> str:
    """All attributes of an event as the table of late ones has them."""
    time = datetime.fromtimestamp(0, timezone.utc).replace(tzinfo=None) + timedelta(microseconds=event.time)
    row = event.row | {"time": str(time)}
    return json.dumps({name: row[name] for name in ATTRIBUTES if name in row})


def accounted(counts: Counter[str]) -> int:
    return counts["events"] + counts["late"] + counts["heartbeats"] + counts["repeats"]


@WIDE
@given(any_rule(), arrivals(late=True), parallelisms(), settings(), st.integers(1, 3))
def test_frontier_late_events_and_matches_are_those_of_one_record_after_another(
    rule: Rule, arrival: Arrival, spread: Parallelism, setting: Setting, parts: int
) -> None:
    steps = list(drive(setting.plan(rule, spread), arrival.tables(rule), finish=True, parts=parts))
    reading = setting.read(rule, arrival)
    assert [step.frontier_us for step in steps] == [
        *(NO_FRONTIER if at is None else at for at in reading.frontiers),
        UNKNOWN_TIME,
    ]
    rows = [row for step in steps for table in step.late for row in table.to_pylist()]
    late = sorted(
        (row["source"], row["offset"], row["lateness_us"], micros(row["event_time"]), row["event"])
        for row in rows
    )
    assert all(row["reason"].startswith("the frontier had passed ") for row in rows)
    assert late == sorted(
        (event.source, event.offset, lateness_us, event.time, told_as(event))
        for event, lateness_us in reading.late
    )
    counts = sum((step.counts for step in steps), Counter())
    assert (counts["heartbeats"], counts["repeats"]) == (reading.heartbeats, len(reading.repeats))
    assert counts["records"] == sum(map(len, arrival.batches)) == accounted(counts)
    assert_equal(rule, expected_rows(rule, reading.kept), pa.concat_tables([step.matches for step in steps]))


@given(any_rule(), arrivals(late=True), parallelisms(), settings())
def test_one_process_tells_the_same_of_every_batch(
    rule: Rule, arrival: Arrival, spread: Parallelism, setting: Setting
) -> None:
    plan = setting.plan(rule, spread)
    local = LocalRun(plan)
    reading = setting.read(rule, arrival)
    for table, frontier, idle, slowest in zip(
        arrival.tables(rule), reading.frontiers, reading.idle, reading.slowest, strict=True
    ):
        step = local.step(table)
        assert step.stats["records"] == table.num_rows == accounted(Counter(step.stats))
        assert step.frontier_us == (NO_FRONTIER if frontier is None else frontier)
        assert (step.stats["idle_sources"], step.slowest) == (len(idle), slowest[:5])
    result = run(plan, arrival.tables(rule))
    assert (result.stats["late"], result.stats["repeats"]) == (len(reading.late), len(reading.repeats))
    assert_equal(rule, expected_rows(rule, reading.kept), result.matches)


@given(any_rule(), arrivals(), st.sampled_from([("x",), ("type", "k")]), parallelisms())
def test_repeats_do_not_depend_on_how_the_events_arrive(
    rule: Rule, one: Arrival, columns: tuple[str, ...], spread: Parallelism
) -> None:
    spec = OrderSpec(one.delay_us, deduplicate_on=columns)
    setting = Setting(spec, None, None)
    together = tuple(event for batch in one.batches for event in batch)
    whole = run(setting.plan(rule, Parallelism(1, 1, 1)), Arrival((together,), one.delay_us).tables(rule))
    steps = list(drive(setting.plan(rule, spread), one.tables(rule), finish=True))
    assert sum(step.counts["repeats"] for step in steps) == whole.stats["repeats"]
    assert_equal(rule, expected_rows(rule, setting.read(rule, one).kept), whole.matches)

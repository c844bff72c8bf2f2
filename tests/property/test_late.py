"""Late events, those below the frontier when their batch began, are set aside and change nothing else."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pyarrow as pa
from hypothesis import given

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.support.checks import WIDE, assert_equal, expected_rows
from tests.support.drawn_rules import any_rule
from tests.support.drive import drive
from tests.support.loaded_rules import ATTRIBUTES
from tests.support.results import micros
from tests.support.streams import Arrival, Parallelism, arrivals, parallelisms


def told_as(event: Event) -> str:
    """All attributes of an event as the table has them."""
    time = datetime.fromtimestamp(0, timezone.utc).replace(tzinfo=None) + timedelta(microseconds=event.time)
    row = event.row | {"time": str(time)}
    return json.dumps({name: row[name] for name in ATTRIBUTES if name in row})


@WIDE
@given(any_rule(), arrivals(late=True), parallelisms())
def test_the_matches_are_those_of_the_events_that_were_not_late(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    plan = build_plan(
        [rule],
        order=OrderSpec(arrival.delay_us),
        slots=spread.slots,
        buckets=spread.buckets,
        lanes=spread.lanes,
        least_lane_rows=1,
    )
    steps = list(drive(plan, arrival.tables(rule), finish=True))
    on_time, late, _ = arrival.on_time()
    assert_equal(rule, expected_rows(rule, on_time), pa.concat_tables([step.matches for step in steps]))
    reported = [row for step in steps for table in step.late for row in table.to_pylist()]
    expected = sorted(
        (event.source, event.offset, lateness_us, event.time, told_as(event)) for event, lateness_us in late
    )
    assert (
        sorted(
            (row["source"], row["offset"], row["lateness_us"], micros(row["event_time"]), row["event"])
            for row in reported
        )
        == expected
    )
    assert all(row["reason"].startswith("the frontier had passed ") for row in reported)

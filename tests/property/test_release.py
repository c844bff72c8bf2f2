"""A match comes out in the batch whose frontier passes the place where it is releasable: not earlier, not later, once."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

from spark_pace.core.plan import build_plan
from spark_pace.core.rule import Rule
from tests.drive import drive
from tests.oracle import evaluate
from tests.property.checks import assert_equal, expected_rows
from tests.results import brief, from_core
from tests.strategies import Arrival, any_rule, arrivals


@given(any_rule(), arrivals(), st.integers(1, 2))
def test_behind_every_batch_stand_the_matches_that_are_releasable_below_the_frontier(rule: Rule, arrival: Arrival, slots: int) -> None:
    events = arrival.on_time()[0]
    everything = expected_rows(rule, events)
    releases = [match.releasable for match in evaluate(rule, events)]
    so_far: list[pa.Table] = []
    plan = build_plan([rule], delay_us=arrival.delay_us, slots=slots, buckets=2)
    for step, frontier in zip(drive(plan, arrival.tables(rule), finish=False), arrival.on_time()[2], strict=True):
        so_far.append(step.matches)
        expected = [row for row, release in zip(everything, releases, strict=True) if frontier is not None and release[0] < frontier]
        note(f"frontier {frontier}: " + "; ".join(map(brief, from_core(rule, step.matches))))
        assert_equal(rule, expected, pa.concat_tables(so_far))

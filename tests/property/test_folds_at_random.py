"""Folds give what the oracle gives, whatever the cuts, the keys, what is forgotten, and the restarts."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.matches import evaluate
from tests.support.checks import WIDE, assert_equal, expected_rows
from tests.support.drawn_rules import FORMS, rules
from tests.support.drive import drive
from tests.support.streams import Arrival, Parallelism, arrivals, dense_streams, parallelisms

RULES = st.one_of(rules(FORMS["fold"]), rules("moves, forgotten keys | function, forgotten keys"))


@WIDE
@given(RULES, arrivals(of=dense_streams()), parallelisms(), st.integers(1, 2), st.booleans())
def test_after_each_batch_the_rows_below_the_frontier_are_out(
    rule: Rule, arrival: Arrival, spread: Parallelism, parts: int, finish: bool
) -> None:
    """The state is saved and restored between all batches."""
    plan = build_plan(
        [rule],
        order=OrderSpec(arrival.delay_us),
        slots=spread.slots,
        buckets=spread.buckets,
        lanes=spread.lanes,
        least_lane_rows=1,
    )
    events = arrival.on_time()[0]
    everything, times = expected_rows(rule, events), [match.matched_at for match in evaluate(rule, events)]
    so_far: list[pa.Table] = []
    for step in drive(plan, arrival.tables(rule), finish=finish, parts=parts):
        so_far.append(step.matches)
        out = [row for row, time in zip(everything, times, strict=True) if time < step.frontier_us]
        assert_equal(rule, out, pa.concat_tables(so_far))

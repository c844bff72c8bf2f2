"""No result depends on batch cuts, arrival order within the delay, slots, buckets, lanes or restarts."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.local import run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.rule import Rule
from tests.support.any_rule import any_rule
from tests.support.checks import WIDE, assert_equal, expected_rows
from tests.support.drive import drive
from tests.support.streams import Arrival, Parallelism, arrivals, parallelisms


def plan_of(rules: list[Rule], arrival: Arrival, spread: Parallelism) -> Plan:
    return build_plan(
        rules,
        order=OrderSpec(arrival.delay_us),
        slots=spread.slots,
        buckets=spread.buckets,
        lanes=spread.lanes,
        lane_rows=1,
    )


@WIDE
@given(any_rule(), arrivals(), parallelisms())
def test_any_arrival_and_any_parallelism_give_the_oracles_matches(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    result = run(
        plan_of([rule], arrival, spread), [table for table in arrival.tables(rule) if table.num_rows]
    )
    on_time, late, _ = arrival.on_time()
    assert not late
    assert_equal(rule, expected_rows(rule, on_time), result.matches)


@WIDE
@given(any_rule(), arrivals(), parallelisms(), st.integers(1, 3))
def test_state_saved_and_restored_between_all_batches_gives_the_oracles_matches(
    rule: Rule, arrival: Arrival, spread: Parallelism, parts: int
) -> None:
    steps = drive(plan_of([rule], arrival, spread), arrival.tables(rule), finish=True, parts=parts)
    assert_equal(
        rule, expected_rows(rule, arrival.on_time()[0]), pa.concat_tables([step.matches for step in steps])
    )


@WIDE
@given(st.lists(any_rule(), min_size=2, max_size=4), arrivals(), parallelisms())
def test_rules_that_run_together_give_what_each_gives_alone(
    drawn: list[Rule], arrival: Arrival, spread: Parallelism
) -> None:
    shared = drawn[0].schema
    rules = [replace(rule, name=f"rule{number}", schema=shared) for number, rule in enumerate(drawn)]
    steps = drive(plan_of(rules, arrival, spread), arrival.tables(rules[0]), finish=True)
    matches = pa.concat_tables([step.matches for step in steps])
    for rule in rules:
        assert_equal(rule, expected_rows(rule, arrival.on_time()[0]), matches)

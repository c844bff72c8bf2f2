"""No result depends on batch cuts, arrival order within the delay, slots, buckets, lanes or restarts."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.price import Price
from spark_pace.core.plan.rule import Rule
from tests.support.checks import WIDE, assert_equal, expected_rows, plan_for
from tests.support.drawn_rules import any_rule
from tests.support.drive import drive
from tests.support.streams import SECOND, Arrival, Parallelism, arrivals, parallelisms


def prices() -> st.SearchStrategy[list[Price | None]]:
    """What operators are predicted to take, batch by batch: from a thousandth of the bound to twice of it."""
    parts = st.sampled_from([0.0, 0.001, 0.1, 0.4, 2.0])
    return st.lists(st.builds(Price, parts, parts) | st.none(), min_size=1, max_size=4)


def plan_of(rules: list[Rule], arrival: Arrival, spread: Parallelism, bound_us: int | None = None) -> Plan:
    return plan_for(rules, OrderSpec(arrival.delay_us), spread, latency_bound_us=bound_us)


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
@given(any_rule(), arrivals(), parallelisms(), st.integers(1, 3), prices())
def test_state_saved_and_restored_between_all_batches_gives_the_oracles_matches_whatever_lanes_are_cut_by(
    rule: Rule, arrival: Arrival, spread: Parallelism, parts: int, told: list[Price | None]
) -> None:
    plan = plan_of([rule], arrival, spread, bound_us=SECOND)
    steps = drive(plan, arrival.tables(rule), finish=True, parts=parts, prices=told)
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

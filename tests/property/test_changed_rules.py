"""Rules added or taken away between two batches: those that stay give what they give in an unbroken run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, RulePlace, build_plan, dealt_out
from spark_pace.core.plan.rule import Rule
from tests.support.checks import WIDE, assert_equal, expected_rows, plan_for
from tests.support.drawn_rules import any_rule
from tests.support.draws import chosen, composite
from tests.support.drive import drive
from tests.support.results import from_core
from tests.support.streams import Arrival, Parallelism, arrivals, parallelisms


@dataclass(frozen=True)
class Stay:
    """A rule, the first batch that it sees, and the first that it does not see any more."""

    rule: Rule
    first: int
    end: int


TWO_TO_FOUR_RULES = st.lists(any_rule(), min_size=2, max_size=4)


@composite
def changes(draw: st.DrawFn) -> tuple[Arrival, list[Stay]]:
    """A stream and rules that come and go; the end of the input is a batch, too."""
    arrival = draw(arrivals())
    steps = len(arrival.batches) + 1
    drawn = draw(TWO_TO_FOUR_RULES)
    stays = []
    for number, rule in enumerate(drawn):
        first = chosen(draw, [0, 0, *range(steps)])
        end = chosen(draw, [steps, steps, *range(first + 1, steps)])
        stays.append(Stay(replace(rule, name=f"rule{number}", schema=drawn[0].schema), first, end))
    return arrival, stays


def plans_of(arrival: Arrival, stays: list[Stay], spread: Parallelism) -> list[Plan]:
    """The plan of each batch: who is there keeps its place, who comes is given one."""
    plans = []
    places: dict[str, RulePlace] = {}
    for batch in range(len(arrival.batches) + 1):
        rules = [stay.rule for stay in stays if stay.first <= batch < stay.end]
        places = dealt_out(rules, spread.slots, spread.buckets, places, since=batch)
        order = OrderSpec(arrival.delay_us)
        every = [stay.rule for stay in stays]
        plans.append(plan_for(every, order, spread, places=places))
    return plans


@WIDE
@given(changes(), parallelisms(), st.integers(1, 3))
def test_rules_that_come_and_go_leave_the_others_alone(
    drawn: tuple[Arrival, list[Stay]], spread: Parallelism, parts: int
) -> None:
    arrival, stays = drawn
    tables = arrival.tables(stays[0].rule)
    steps = drive(plans_of(arrival, stays, spread), tables, finish=True, parts=parts)
    matches = pa.concat_tables([step.matches for step in steps], promote_options="default")
    for stay in stays:
        if stay.end > len(tables):
            read = [event for batch in arrival.batches[stay.first :] for event in batch]
            assert_equal(stay.rule, expected_rows(stay.rule, read), matches)
        elif stay.first == 0:
            alone = drive(
                build_plan([stay.rule], order=OrderSpec(arrival.delay_us)), tables[: stay.end], finish=False
            )
            expected = pa.concat_tables([step.matches for step in alone])
            assert from_core(stay.rule, matches) == from_core(stay.rule, expected)

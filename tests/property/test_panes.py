"""Grid spans that aggregate give the oracle's rows however panes are cut, put together, stored and loaded."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.rule import EmitField, GridSpan, Rule
from tests.oracle.contexts import Event
from tests.support.aggregate_strategies import aggregate_rules, over
from tests.support.checks import WIDE, assert_equal, expected_rows
from tests.support.drive import drive
from tests.support.strategies import forgetful
from tests.support.streams import SECOND, Arrival, Parallelism, arrivals, parallelisms, streams

# every, size: panes of 1 us, 1 s, 2 s and 3 s; spans that overlap, that follow each other, and with gaps
GRIDS = [(1, 2), (2, 6), (4, 6), (3, 3), (5, 2), (6, 3), (9, 12)]
ANY_SIZE = st.sampled_from(
    [1e308, 1.7e308, -1.7e308, 5e-324, -2.3e-308, 0.1, 3.0, 2.0**53, -0.0, math.inf]
) | (st.floats(allow_nan=True, allow_infinity=False))


def spans() -> st.SearchStrategy[GridSpan]:
    whole = st.sampled_from(GRIDS).map(lambda grid: GridSpan(grid[0] * SECOND, grid[1] * SECOND))
    return whole | st.just(GridSpan(2 * SECOND, 3 * SECOND + 1))


@st.composite
def of_any_size(draw: st.DrawFn) -> list[Event]:
    """A stream whose numbers are of any size."""
    events = draw(streams())
    reals = draw(st.lists(ANY_SIZE | st.none(), min_size=len(events), max_size=len(events)))
    return [replace(event, row=event.row | {"z": real}) for event, real in zip(events, reals, strict=True)]


def plan_of(rule: Rule, arrival: Arrival, spread: Parallelism) -> Plan:
    order = OrderSpec(arrival.delay_us)
    return build_plan(
        [rule], order=order, slots=spread.slots, buckets=spread.buckets, lanes=spread.lanes, least_lane_rows=1
    )


def of_events(plan: Plan) -> Plan:
    """The plan without panes: rules carry events."""
    return replace(plan, rules=tuple(replace(planned, panes=None) for planned in plan.rules))


def with_sums(rule: Rule) -> Rule:
    """The rule with all that is made of sums of numbers of any size."""
    kinds = ("count", "sum", "avg", "stddev", "min", "max", "first", "last")
    fields = [EmitField(f"z_{kind}", "DOUBLE", over(kind, "z", "DOUBLE")) for kind in kinds[1:]]
    counted = EmitField("z_count", "BIGINT", over("count", "z"))
    return replace(rule, emit=(counted, *fields), having=None)


@WIDE
@given(
    aggregate_rules(spans()) | aggregate_rules(spans()).flatmap(forgetful),
    arrivals(),
    parallelisms(),
    st.sampled_from([1, 8, ways.SMALL]),
)
def test_panes_give_the_oracles_rows_wherever_batches_cut_them(
    rule: Rule, arrival: Arrival, spread: Parallelism, small: int
) -> None:
    plan = plan_of(rule, arrival, spread)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "SMALL", small)
        steps = list(drive(plan, arrival.tables(rule), finish=True, parts=2))
    matches = pa.concat_tables([step.matches for step in steps])
    assert_equal(rule, expected_rows(rule, arrival.on_time()[0]), matches)


@given(aggregate_rules(spans()), arrivals(), parallelisms())
def test_estimates_do_not_depend_on_panes_and_their_cut(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    of = (over("approx_count_distinct", name) for name in ("k", "x", "z"))
    fields = tuple(EmitField(f"of{place}", "BIGINT", one) for place, one in enumerate(of))
    plan = plan_of(replace(rule, emit=fields, having=None), arrival, spread)
    assert plan.rules[0].panes is not None
    found = [
        pa.concat_tables([step.matches for step in drive(one, arrival.tables(rule), finish=True)])
        for one in (plan, of_events(plan))
    ]
    assert found[0].to_pylist() == found[1].to_pylist()


@given(aggregate_rules(spans()).map(with_sums), arrivals(of=of_any_size()), parallelisms())
def test_sums_of_numbers_of_any_size_are_the_oracles(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    steps = drive(plan_of(rule, arrival, spread), arrival.tables(rule), finish=True)
    matches = pa.concat_tables([step.matches for step in steps])
    assert_equal(rule, expected_rows(rule, arrival.on_time()[0]), matches)

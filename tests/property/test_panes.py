"""Grid spans that aggregate give the oracle's rows however panes are cut, put together, stored and loaded."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.property.test_invariance import plan_of
from tests.support.checks import WIDE, assert_equal, expected_rows
from tests.support.drawn_rules import rules
from tests.support.drive import drive
from tests.support.loaded_rules import aggregating
from tests.support.streams import Arrival, Parallelism, arrivals, parallelisms, streams

# every, size: panes of 1 us, 1 s, 2 s and 3 s; spans that overlap, that follow each other, and with gaps
GRIDS = [(1, 2), (2, 6), (4, 6), (3, 3), (5, 2), (6, 3), (9, 12)]
ANY_SIZE = st.sampled_from(
    [1e308, 1.7e308, -1.7e308, 5e-324, -2.3e-308, 0.1, 3.0, 2.0**53, -0.0, math.inf]
) | (st.floats(allow_nan=True, allow_infinity=False))


SUMS = ", ".join(
    f"z_{one}: {one}(z)" for one in ("count", "sum", "avg", "stddev", "min", "max", "first", "last")
)


def over_grids(forms: str = "") -> st.SearchStrategy[Rule]:
    """Rules that aggregate these grids."""
    seconds = [(f"{every} s", f"{size} s") for every, size in GRIDS]
    texts = [
        f"{{every: {every}, size: {size}}}" for every, size in [*seconds, *seconds, ("2 s", "3000001 us")]
    ]
    return st.sampled_from(texts).flatmap(lambda text: rules(f"aggregates{forms}", span=text))


@st.composite
def of_any_size(draw: st.DrawFn) -> list[Event]:
    """A stream whose numbers are of any size."""
    events = draw(streams())
    reals = draw(st.lists(ANY_SIZE | st.none(), min_size=len(events), max_size=len(events)))
    return [replace(event, row=event.row | {"z": real}) for event, real in zip(events, reals, strict=True)]


def of_events(plan: Plan) -> Plan:
    """The plan without panes: rules carry events."""
    return replace(plan, rules=tuple(replace(planned, panes=None) for planned in plan.rules))


def with_sums(rule: Rule) -> Rule:
    """The rule with all that is made of sums of numbers of any size."""
    return replace(rule, emit=aggregating(SUMS).emit, having=None)


@WIDE
@given(
    over_grids() | over_grids(", forgotten keys"),
    arrivals(),
    parallelisms(),
    st.sampled_from([1, 8, ways.SMALL]),
)
def test_panes_give_the_oracles_rows_wherever_batches_cut_them(
    rule: Rule, arrival: Arrival, spread: Parallelism, small: int
) -> None:
    plan = plan_of([rule], arrival, spread)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "SMALL", small)
        steps = list(drive(plan, arrival.tables(rule), finish=True, parts=2))
    matches = pa.concat_tables([step.matches for step in steps])
    assert_equal(rule, expected_rows(rule, arrival.on_time()[0]), matches)


@given(over_grids(), arrivals(), parallelisms())
def test_estimates_do_not_depend_on_panes_and_their_cut(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    of = (f"of_{name}: approx_count_distinct({name})" for name in "kxz")
    rule = replace(rule, emit=aggregating(", ".join(of)).emit, having=None)
    plan = plan_of([rule], arrival, spread)
    assert plan.rules[0].panes is not None
    found = [
        pa.concat_tables([step.matches for step in drive(one, arrival.tables(rule), finish=True)])
        for one in (plan, of_events(plan))
    ]
    assert found[0].to_pylist() == found[1].to_pylist()


@given(over_grids().map(with_sums), arrivals(of=of_any_size()), parallelisms())
def test_sums_of_numbers_of_any_size_are_the_oracles(
    rule: Rule, arrival: Arrival, spread: Parallelism
) -> None:
    steps = drive(plan_of([rule], arrival, spread), arrival.tables(rule), finish=True)
    matches = pa.concat_tables([step.matches for step in steps])
    assert_equal(rule, expected_rows(rule, arrival.on_time()[0]), matches)

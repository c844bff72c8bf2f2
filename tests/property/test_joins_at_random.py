"""Rules whose conditions keep a match to one value of an attribute: events are kept by that value."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.match.method import method_of
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Merge
from tests.oracle.contexts import Event
from tests.support.checks import assert_equal, rows_and_releases
from tests.support.drawn_rules import rules
from tests.support.drive import drive
from tests.support.free import BEYOND, FREE
from tests.support.loaded_rules import MERGES
from tests.support.results import table_of
from tests.support.streams import streams


@pytest.mark.parametrize("merge", MERGES)
@FREE
@given(data=st.data())
def test_after_each_batch_it_has_given_what_is_releasable_below_the_frontier(
    context: Context, close_window: bool, merge: Merge, data: st.DataObject
) -> None:
    """Its state is saved and restored between all batches."""
    rule = replace(
        data.draw(rules("join, close window" if close_window else "join", (context,))), merge=merge
    )
    assert context.selection == "next" or method_of(rule).join is not None
    events = data.draw(streams())
    batches, place = list[list[Event]](), 0
    while place < len(events):
        size = data.draw(st.integers(1, 5))
        batches.append(events[place : place + size])
        place += size
    everything, releases = rows_and_releases(rule, events)
    if events:  # of a type that no component has
        last = events[-1]
        batches.append(
            [replace(last, time=last.time + BEYOND, row={**last.row, "type": "z", "x": 9, "y": 9})]
        )
    plan = build_plan([rule], order=OrderSpec(), lanes=data.draw(st.integers(1, 3)), least_lane_rows=1)
    so_far: list[pa.Table] = []
    for step in drive(plan, [table_of(rule, batch) for batch in batches], finish=False):
        so_far.append(step.matches)
        expected = [
            row for row, release in zip(everything, releases, strict=True) if release[0] < step.frontier_us
        ]
        assert_equal(rule, expected, pa.concat_tables(so_far))

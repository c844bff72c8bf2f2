"""Rules whose conditions keep a match to one value of an attribute: events are kept by that value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.match.method import method_of
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Merge
from tests.support.checks import assert_out_in_time, noted_matches
from tests.support.drawn_rules import rules
from tests.support.drive import drive
from tests.support.free import FREE, some_at_a_time
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
    batches = some_at_a_time(data, data.draw(streams()), 5)
    plan = build_plan([rule], order=OrderSpec(), lanes=data.draw(st.integers(1, 3)), least_lane_rows=1)
    steps = drive(plan, [table_of(rule, batch) for batch in batches], finish=False)
    assert_out_in_time(rule, noted_matches(rule, [event for batch in batches for event in batch]), steps)

"""Rules that use nothing up, with much more carried than is new: the splitter searches for what is new."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Merge, Within
from tests.support.checks import assert_out_in_time, noted_matches
from tests.support.drawn_rules import rules
from tests.support.drive import drive
from tests.support.free import FREE, some_at_a_time
from tests.support.loaded_rules import MERGES
from tests.support.results import table_of
from tests.support.streams import SECOND, streams


@pytest.mark.parametrize("merge", MERGES)
@FREE
@given(data=st.data())
def test_after_each_batch_it_has_given_what_is_releasable_below_the_frontier(
    context: Context, close_window: bool, merge: Merge, data: st.DataObject
) -> None:
    """Its state is saved and restored between all batches."""
    forms = "carried, close window" if close_window else "carried"
    drawn = data.draw(rules(f"{forms}, where | {forms}, no where", (context,)))
    assert drawn.pattern is not None
    within = Within(time_us=data.draw(st.sampled_from([100, 8, 8, 5, 3])) * SECOND)
    rule = replace(drawn, merge=merge, partition_by=(), pattern=replace(drawn.pattern, within=within))
    batches = some_at_a_time(data, data.draw(streams()), 3)
    plan = build_plan([rule], order=OrderSpec(), lanes=data.draw(st.integers(1, 3)), least_lane_rows=1)
    matches = noted_matches(rule, [event for batch in batches for event in batch])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "MUCH", data.draw(st.sampled_from([0, 0, 1])))
        steps = drive(plan, [table_of(rule, batch) for batch in batches], finish=False)
        assert_out_in_time(rule, matches, steps)

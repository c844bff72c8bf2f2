"""Rules that use nothing up, with much more carried than is new: the splitter searches for what is new."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Merge, Within
from tests.oracle.matches import evaluate
from tests.support.checks import assert_equal
from tests.support.drawn_rules import rules
from tests.support.drive import drive
from tests.support.free import BEYOND, FREE
from tests.support.loaded_rules import MERGES
from tests.support.results import from_oracle, table_of
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
    events = data.draw(streams())
    batches = []
    while events:
        size = data.draw(st.integers(1, 3))
        batches.append(events[:size])
        events = events[size:]
    if batches:  # of a type that no component has
        last = batches[-1][-1]
        row = {**last.row, "type": "z", "x": 9, "y": 9}
        batches.append([replace(last, time=last.time + BEYOND, row=row)])
    found = evaluate(rule, [event for batch in batches for event in batch])
    plan = build_plan([rule], order=OrderSpec(), lanes=data.draw(st.integers(1, 3)), least_lane_rows=1)
    so_far: list[pa.Table] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "MUCH", data.draw(st.sampled_from([0, 0, 1])))
        for step in drive(plan, [table_of(rule, batch) for batch in batches], finish=False):
            so_far.append(step.matches)
            releasable = [match for match in found if match.releasable[0] < step.frontier_us]
            assert_equal(rule, from_oracle(rule, releasable), pa.concat_tables(so_far))

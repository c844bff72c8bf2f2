"""Of keys that are forgotten nothing is known; `test_release_at_random.py` has their matches."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given

from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.carry.carry import Wanted
from spark_pace.core.split.carry.examined_keys import Forgetting
from spark_pace.core.split.snapshot import load
from spark_pace.core.tables import NO_FRONTIER
from tests.oracle.contexts import Event
from tests.oracle.rules_stream import end_of, in_stream_order, keyed_streams
from tests.support.checks import WIDE
from tests.support.drawn_rules import any_forgetful_rule
from tests.support.streams import Arrival, arrivals


@WIDE
@given(any_forgetful_rule(), arrivals())
def test_after_each_batch_only_live_keys_are_known(rule: Rule, arrival: Arrival) -> None:
    """A key is alive until the frontier is more than `forget_key_after` behind its last event."""
    plan = build_plan([rule], order=OrderSpec(arrival.delay_us))
    local = LocalRun(plan)
    after_us = rule.forget_key_after_us
    assert after_us is not None
    seen: list[Event] = []
    for batch, table in zip(arrival.batches, arrival.tables(rule), strict=True):
        frontier_us = local.step(table).frontier_us
        seen += batch
        released = [event for event in seen if event.time < frontier_us]
        known = dict(keyed_streams(rule, in_stream_order(rule, released)))
        alive = {key: stream for key, stream in known.items() if end_of(rule, stream)[0] >= frontier_us}
        _, ((_, carry),) = load(plan, 0, local.splitters[0].snapshot())
        assert carry.keys == len(alive)
        assert alive or not carry.chunks
        assert frontier_us > NO_FRONTIER or not known
        wanted = Wanted(Forgetting(after_us, frontier_us, frontier_us))
        touched = carry.find(pa.array(list(known), pa.string()), wanted)
        assert touched.new == len(known) - len(alive)
        assert touched.next_seq.tolist() == [len(alive.get(key, ())) for key in known]

"""No match goes out later than its rule says: the rules that read matches rely on it."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, target
from hypothesis import strategies as st

from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.rule import Merge, Rule
from tests.oracle.contexts import Event
from tests.oracle.matches import evaluate
from tests.support.checks import WIDE
from tests.support.drawn_rules import any_rule
from tests.support.loaded_rules import MERGES
from tests.support.streams import dense_streams, streams


@WIDE
@given(any_rule(), st.sampled_from(MERGES), streams() | dense_streams())
def test_no_match_goes_out_later_behind_its_time_than_its_rule_allows(
    drawn: Rule, merge: Merge, events: list[Event]
) -> None:
    rule = replace(drawn, merge=merge)
    most_us = delay_us(rule)
    if most_us is None:
        return
    waits = [match.releasable[0] - match.matched_at for match in evaluate(rule, events)]
    target(float(max(waits, default=-math.inf) - most_us) if waits else -1e9)
    assert max(waits, default=0) <= most_us

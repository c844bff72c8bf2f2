"""How many selections count as open: while the input goes on (its newest event waits), and at its end."""

from __future__ import annotations

import pytest

from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from tests.support.golden_cases import parse_events, rule_of
from tests.support.results import table_of

PAIR = "pattern: {sequence: [a: type = 'a', b: type = 'b']}"


@pytest.mark.parametrize(
    ("keys", "stream", "going_on", "ended"),
    [
        ("", "a1 b1 a2 a3 x1", 2, 2),
        ("within: 2 s", "a1 b1 a2 x1 x2 a3 a4", 1, 2),
        ("context: 'each, selected'", "a1 a2 b1 a3 a4 x1", 1, 1),
        ("context: 'earliest, selected'", "a1 a2 b1 a3 x1", 2, 2),
        ("context: 'latest, zero', within: 3 s", "a1 b1 a2 a3", 2, 2),
        ("span: {open: type = 'o', close: type = 'c', within: 3 s}", "o1 o2 c1 o3 x1 x2", 1, 1),
        ("span: {every: 2 s, size: 4 s}", "a1@1 b1@2 a2@5", 1, 2),
        ("span: {every: 2 events, size: 3 events}", "a1 b1 a2 b2 a3 x1", 1, 1),
        ("span: {gap: 2 s}", "a1@1 b1@3 x1@5 a2@6", 1, 1),
        ("span: {gap: 2 s, within: 3 s}", "a1@1 b1@3 x1@4 a2@4", 1, 0),
    ],
)
def test_selections_that_wait_for_more_are_counted(keys: str, stream: str, going_on: int, ended: int) -> None:
    rule = rule_of(f"{PAIR}, {keys}")
    plan = build_plan([rule], order=OrderSpec())
    batches = [table_of(rule, parse_events(stream))]
    assert run(plan, batches, finish=False).stats["open"] == going_on
    assert run(plan, batches).stats["open"] == ended

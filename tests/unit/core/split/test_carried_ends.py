"""Events that can only end matches are carried no further where each of their matches went out with them."""

from __future__ import annotations

import pytest

from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.rules import explain
from tests.oracle.contexts import Event
from tests.support.golden_cases import rule_of
from tests.support.results import from_core, table_of
from tests.support.streams import SECOND

STEPS = 40
PAIR = "pattern: {sequence: [p0: type = 'a', b: type = 'b']}, "
WINDOW = "within: 1 h, merge: detection, close: window"
LATEST = "within: 1 h, merge: detection, context: 'latest, zero'"
KEPT = {
    "groups": PAIR.replace("b:", "{name: g, when: type = 'c', times: 0+}, b:") + LATEST,
    "a negation": PAIR.replace("b:", "{name: n, when: x = 9, not: true}, b:") + WINDOW,
    "matches that wait": f"{PAIR}within: 1 h, merge: selection, close: window",
    "a window of events": f"{PAIR}within: 500 events, merge: detection, close: window",
    "selections that are closed": f"{PAIR}within: 1 h, merge: detection, where: b.x > p0.x",
}


def batches() -> list[list[Event]]:
    """An `a`, then two `b` in each step; the last `b` of a step is the `a` of no match."""
    told = [[("a", 1)], *([("b", 2), ("b", 0)] for _ in range(STEPS))]
    numbers = iter(range(1 + 2 * STEPS))
    return [
        [
            Event(
                (at := next(numbers)) * SECOND,
                "s",
                at,
                {"time": at * SECOND, "id": f"{kind}{at}", "type": kind, "x": x, "y": 1},
            )
            for kind, x in step
        ]
        for step in told
    ]


def carried(rule: Rule) -> list[int]:
    """How many events are carried behind each step, while the matches of all steps are those of one."""
    plan, steps = build_plan([rule], order=OrderSpec()), [table_of(rule, step) for step in batches()]
    local = LocalRun(plan)
    counts = [local.step(step).stats["carry"] for step in steps]
    together = table_of(rule, [event for step in batches() for event in step])
    assert from_core(rule, run(plan, steps).matches) == from_core(rule, run(plan, [together]).matches) != []
    return counts


@pytest.mark.parametrize("more", ["", ", partition_by: ['y']", ", where: b.x > p0.x"])
@pytest.mark.parametrize("keys", [WINDOW, LATEST], ids=["each", "latest"])
def test_ends_are_not_carried(keys: str, more: str) -> None:
    rule = rule_of(PAIR + keys + more)
    assert carried(rule)[1:] == [1] * STEPS
    assert "but those that can only end a match" in "".join(explain(rule))


@pytest.mark.parametrize("reason", KEPT)
def test_ends_are_carried_where_a_later_batch_may_need_them(reason: str) -> None:
    rule = rule_of(KEPT[reason])
    assert carried(rule)[-1] > STEPS
    assert "but those that can only end a match" not in "".join(explain(rule))

"""Events that can only end matches are carried no further where each of their matches went out with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.rules import explain, load_rules
from tests.oracle.contexts import Event
from tests.support.golden_cases import SCHEMA
from tests.support.results import from_core, table_of
from tests.support.streams import SECOND

STEPS = 40
KEPT = {
    "groups": {
        "pattern": [{"p0": "type = 'a'"}, {"name": "g", "when": "type = 'c'", "times": "0+"}, "b"],
        "context": "latest, zero",
        "close": "completion",
    },
    "a negation": {"pattern": [{"p0": "type = 'a'"}, {"name": "n", "when": "x = 9", "not": True}, "b"]},
    "matches that wait": {"merge": "selection"},
    "a window of events": {"within": "500 events"},
    "selections that are closed": {"close": "completion", "where": "b.x > p0.x"},
}


def rule_of(directory: Path, **changed: Any) -> Rule:
    pattern = changed.pop("pattern", [{"p0": "type = 'a'"}, "b"])
    sequence = [{"b": "type = 'b'"} if component == "b" else component for component in pattern]
    rule = {
        "name": "r",
        "pattern": {"sequence": sequence},
        "within": "1 h",
        "close": "window",
        "merge": "detection",
        **changed,
    }
    path = directory / "rules.yaml"
    path.write_text(yaml.safe_dump({"events": SCHEMA, "rules": [rule]}), encoding="utf-8")
    (loaded,) = load_rules(path)
    return loaded


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


@pytest.mark.parametrize("more", [{}, {"partition_by": ["y"]}, {"where": "b.x > p0.x"}], ids=str)
@pytest.mark.parametrize(
    "context", [{}, {"context": "latest, zero", "close": "completion"}], ids=["each", "latest"]
)
def test_ends_are_not_carried(tmp_path: Path, context: dict[str, Any], more: dict[str, Any]) -> None:
    rule = rule_of(tmp_path, **context, **more)
    assert carried(rule)[1:] == [1] * STEPS
    assert "but those that can only end a match" in "".join(explain(rule))


@pytest.mark.parametrize("reason", KEPT)
def test_ends_are_carried_where_a_later_batch_may_need_them(tmp_path: Path, reason: str) -> None:
    rule = rule_of(tmp_path, **KEPT[reason])
    assert carried(rule)[-1] > STEPS
    assert "but those that can only end a match" not in "".join(explain(rule))

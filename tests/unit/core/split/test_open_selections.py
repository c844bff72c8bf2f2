"""How many selections count as open: while the input goes on (its newest event waits), and at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.rules import load_rules
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.results import table_of

PAIR = {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]}


@pytest.mark.parametrize(
    ("rule", "stream", "going_on", "ended"),
    [
        ({"pattern": PAIR}, "a1 b1 a2 a3 x1", 2, 2),
        ({"pattern": PAIR, "within": "2 s"}, "a1 b1 a2 x1 x2 a3 a4", 1, 2),
        ({"pattern": PAIR, "context": "each, selected"}, "a1 a2 b1 a3 a4 x1", 1, 1),
        ({"pattern": PAIR, "context": "earliest, selected"}, "a1 a2 b1 a3 x1", 2, 2),
        ({"pattern": PAIR, "context": "latest, zero", "within": "3 s"}, "a1 b1 a2 a3", 2, 2),
        (
            {"pattern": PAIR, "span": {"open": "type = 'o'", "close": "type = 'c'", "within": "3 s"}},
            "o1 o2 c1 o3 x1 x2",
            1,
            1,
        ),
        ({"pattern": PAIR, "span": {"every": "2 s", "size": "4 s"}}, "a1@1 b1@2 a2@5", 1, 2),
        ({"pattern": PAIR, "span": {"every": "2 events", "size": "3 events"}}, "a1 b1 a2 b2 a3 x1", 1, 1),
        ({"pattern": PAIR, "span": {"gap": "2 s"}}, "a1@1 b1@3 x1@5 a2@6", 1, 1),
        ({"pattern": PAIR, "span": {"gap": "2 s", "within": "3 s"}}, "a1@1 b1@3 x1@4 a2@4", 1, 0),
    ],
)
def test_selections_that_wait_for_more_are_counted(
    tmp_path: Path, rule: dict[str, object], stream: str, going_on: int, ended: int
) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"events": SCHEMA, "rules": [{"name": "r", **rule}]}), encoding="utf-8")
    (loaded,) = load_rules(path)
    plan = build_plan([loaded], order=OrderSpec())
    batches = [table_of(loaded, parse_events(stream))]
    assert run(plan, batches, finish=False).stats["open"] == going_on
    assert run(plan, batches).stats["open"] == ended

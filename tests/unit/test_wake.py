"""Keys of which no more events come: what waits for the end of a window goes out when that has passed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from spark_pace.core.local import LocalRun
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.rules import load_rules
from tests.oracle.matches import evaluate
from tests.support.checks import assert_equal
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.results import from_oracle, table_of
from tests.support.strategies import CONTEXTS

PAIR = {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]}


def rule_of(folder: Path, **keys: object) -> Rule:
    path = folder / "rules.yaml"
    rule = {"name": "r", "partition_by": ["x"], "merge": "selection", "filter": "type <> 'z'"}
    rule |= {"pattern": PAIR, **keys}
    rule = {key: value for key, value in rule.items() if value is not None}
    path.write_text(yaml.safe_dump({"events": SCHEMA, "rules": [rule]}), encoding="utf-8")
    (loaded,) = load_rules(path)
    return loaded


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@pytest.mark.parametrize("merge", ["selection", "detection"])
def test_a_match_goes_out_when_the_windows_before_it_end_and_nothing_is_left(
    tmp_path: Path, context: object, merge: str
) -> None:
    rule = rule_of(tmp_path, context=str(context), merge=merge, within="5 s", where="b.y >= a.y")
    falls_silent(rule, "a1@0=1,9 a2@1=1,1 b1@2=1,5 a3@3=1,2 b2@4=1,3 a4@4=1,7")


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize(
    "span", [{"open": "type = 'o'", "close": "type = 'c'", "within": "5 s"}, {"every": "2 s", "size": "5 s"}]
)
def test_a_span_ends_when_its_time_is_over_and_nothing_is_left(
    tmp_path: Path, span: dict[str, str], operator: bool
) -> None:
    inside = {"pattern": None, "operator": "tests.support.operators:summary", "emit": {"n": "BIGINT"}}
    rule = rule_of(tmp_path, span=span, **(inside if operator else {}))
    falls_silent(rule, "o1@0=1,1 o2@1=1,1 a1@2=1,1 b1@3=1,1")


def falls_silent(rule: Rule, stream: str) -> None:
    """Run the events of one key, let the frontier pass them, and then all windows that start at them."""
    run = LocalRun(build_plan([rule], order=OrderSpec()))
    steps = [run.step(table_of(rule, parse_events(text))) for text in (stream, "z1@4.5=9", "z2@20=9")]
    expected = from_oracle(rule, evaluate(rule, parse_events(stream)))
    assert expected
    assert_equal(rule, expected, pa.concat_tables([step.matches for step in steps]))
    assert steps[1].stats["carry"] > 0
    assert (steps[2].stats["carry"], steps[2].stats["open"]) == (0, 0)

"""Keys of which no more events come: what waits for the end of a window goes out when the frontier passes it."""

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
    rule = {"name": "r", "partition_by": ["x"], "merge": "selection", "pattern": PAIR, **keys}
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
    falls_silent(rule, "a1@0=1,9 a2@1=1,1 b1@2=1,5 a3@3=1,2 b2@4=1,3", "a9@20=2,1")


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize(
    "span", [{"open": "type = 'o'", "close": "type = 'c'", "within": "5 s"}, {"every": "2 s", "size": "5 s"}]
)
def test_a_span_ends_when_its_time_is_over_and_nothing_is_left(
    tmp_path: Path, span: dict[str, str], operator: bool
) -> None:
    inside = {"pattern": None, "operator": "tests.support.operators:summary", "emit": {"n": "BIGINT"}}
    rule = rule_of(tmp_path, span=span, **(inside if operator else {}))
    falls_silent(rule, "o1@0=1,1 o2@1=1,1 a1@2=1,1 b1@3=1,1", "a9@20=2,1")


def falls_silent(rule: Rule, stream: str, later: str) -> None:
    """Run the stream of one key, then an event of another: it moves the frontier, and waits itself."""
    run = LocalRun(build_plan([rule], order=OrderSpec()))
    batches = [table_of(rule, parse_events(text)) for text in (stream, later)]
    first, second = (run.step(batch) for batch in batches)
    expected = from_oracle(rule, evaluate(rule, parse_events(stream)))
    assert expected
    assert_equal(rule, expected, pa.concat_tables([first.matches, second.matches]))
    assert (second.stats["pending"], second.stats["carry"], second.stats["open"]) == (1, 0, 0)

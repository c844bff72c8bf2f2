"""NaN is the greatest number among those of a group too: in `where`, in `emit`, in every context and span."""

from __future__ import annotations

from typing import Any

import pytest

from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.rules import load_rules
from tests.oracle.contexts import Event
from tests.oracle.matches import evaluate
from tests.support.checks import assert_equal
from tests.support.loaded_rules import CONTEXTS
from tests.support.results import from_core, from_oracle, table_of
from tests.support.streams import SECOND

NAN = float("nan")
EVENTS = {"schema": "time TIMESTAMP, type STRING, z DOUBLE", "event_time": "time"}
GROUP = {"sequence": [{"name": "b", "when": "type = 'b'", "times": "1+"}, {"c": "type = 'c'"}]}
FIELDS = {"least": "min(b.z)", "greatest": "max(b.z)"}
SPANS: list[dict[str, Any]] = [
    {"open": "type = 'b'", "close": "type = 'c'", "within": "9 s"},
    {"every": "9 s", "size": "9 s"},
    {"every": "3 events", "size": "3 events"},
]


def rule_of(**more: Any) -> Rule:
    rule = {"name": "r", "pattern": GROUP, "emit": FIELDS, **more}
    (loaded,) = load_rules({"events": EVENTS, "rules": [rule]})
    return loaded


def stream(*numbers: float | None) -> list[Event]:
    """An event of type ``b`` for each number, then one of type ``c``."""
    told = [*(("b", number) for number in numbers), ("c", None)]
    return [
        Event(place * SECOND, "s", place, {"time": place * SECOND, "type": kind, "z": number})
        for place, (kind, number) in enumerate(told)
    ]


def fields(rule: Rule, events: list[Event]) -> list[list[Any]]:
    """The fields of the matches, which are the oracle's."""
    matches = run(build_plan([rule], order=OrderSpec()), [table_of(rule, events)]).matches
    assert_equal(rule, from_oracle(rule, evaluate(rule, events)), matches)
    return [[row["fields"][name] for name in FIELDS] for row in from_core(rule, matches)]


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_it_is_the_greatest_of_a_group(context: str) -> None:
    rule = rule_of(context=str(context), within="9 s", where="max(b.z) >= 3")
    assert fields(rule, stream(0.0, NAN))[:1] in ([[0.0, "NaN"]], [["NaN", "NaN"]])
    assert fields(rule, stream(0.0, 1.0)) == []
    assert fields(rule, stream(None)) == []


@pytest.mark.parametrize("span", SPANS, ids=["opened", "by time", "by number"])
def test_it_is_the_greatest_of_a_group_in_a_span(span: dict[str, Any]) -> None:
    rule = rule_of(span=span, where="max(b.z) >= 3")
    assert [0.0, "NaN"] in fields(rule, stream(0.0, NAN))


def test_the_least_is_nan_only_where_all_are_and_zero_has_no_sign() -> None:
    rule = rule_of(context="next, selected", within="9 s", where="count(b) >= 2")
    assert fields(rule, stream(NAN, None)) == [["NaN", "NaN"]]
    assert fields(rule, stream(NAN, -1.0)) == [[-1.0, "NaN"]]
    assert list(map(str, fields(rule, stream(-0.0, -0.0))[0])) == ["0.0", "0.0"]
    assert fields(rule, stream(None, None)) == [[None, None]]

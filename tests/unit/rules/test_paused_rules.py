"""Rules with `enabled: false` are checked, and left out of what runs."""

from __future__ import annotations

from typing import Any

import pytest

from spark_pace import replay
from spark_pace.errors import RuleError
from spark_pace.rules import load_rules

EVENTS = {"schema": "t TIMESTAMP, x BIGINT", "event_time": "t"}


def rule(name: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "pattern": {"sequence": [{"a": "x > 1"}]}, **keys}


def test_a_paused_rule_is_left_out() -> None:
    rules = [rule("one"), rule("two", enabled=False), rule("three", enabled=True)]
    loaded = load_rules({"events": EVENTS, "rules": rules})
    assert [one.name for one in loaded] == ["one", "three"]
    found = replay(loaded, [{"t": "2024-05-01T12:00:00Z", "x": 2}])
    assert set(found.matches.table["rule"].to_pylist()) == {"one", "three"}


def test_a_paused_rule_may_read_one_that_runs_and_one_that_is_paused() -> None:
    rules = [rule("low", emit={"x": "a.x"}), rule("off", enabled=False, emit={"x": "a.x"})]
    rules.append(rule("up", enabled=False, **{"from": ["low", "off"]}))
    assert [one.name for one in load_rules({"events": EVENTS, "rules": rules})] == ["low"]


def test_a_paused_rule_is_checked() -> None:
    with pytest.raises(RuleError, match='must name an attribute of the events; got "y"'):
        wrong = rule("two", enabled=False, filter="y = 1")
        load_rules({"events": EVENTS, "rules": [rule("one"), wrong]})


def test_some_rule_must_run() -> None:
    with pytest.raises(RuleError, match=r"^rules — must have a rule that is not paused; got enabled: false"):
        load_rules({"events": EVENTS, "rules": [rule("one", enabled=False)]})

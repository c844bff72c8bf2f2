"""Rules with `enabled: false` are checked, and left out of what runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_pace import replay
from spark_pace.errors import RuleError
from spark_pace.rules import load_rules
from tests.support.commands import message_of, spark_pace

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


def test_who_asks_about_a_paused_rule_or_resets_one_is_told_that_it_is_paused(tmp_path: Path) -> None:
    rules = {"events": EVENTS, "rules": [rule("one"), rule("two", enabled=False)]}
    (tmp_path / "rules.yaml").write_text(json.dumps(rules))
    (tmp_path / "in.json").write_text('{"t": "2024-05-01T12:00:00Z", "x": 2}\n')
    source = {"kind": "files", "format": "json", "path": "in.json"}
    job = {"name": "job", "source": source, "rules": ["rules.yaml"], "checkpoint": "checkpoint"}
    job |= {"sink": {"kind": "delta", "path": "out"}}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    must = "must name a rule that runs; got two, which is paused."
    for file in ("rules.yaml", "job.yaml"):
        asked = ["why", file, "in.json", "--at", "in.json:0", "--rule"]
        done = spark_pace(*asked, "two", cwd=tmp_path)
        do = "Remove its enabled: false, in a copy of the file perhaps."
        assert (done.returncode, done.stderr) == (2, f"--rule — {must} {do}\n")
        assert spark_pace(*asked, "one", cwd=tmp_path).returncode == 0
        done = spark_pace(*asked, "three", cwd=tmp_path)
        assert done.stderr == "--rule — must name a rule of the file; got three. Choose from one.\n"
    done = spark_pace("run", "job.yaml", "--reset-rule", "two", cwd=tmp_path)
    told = "--reset-rule — must name a rule of the job that is not paused; got two. Choose from one.\n"
    assert (done.returncode, message_of(done.stderr)) == (2, told)
    assert not (tmp_path / "checkpoint").exists()

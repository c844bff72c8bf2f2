"""Rules over rules find their matches as soon as they may: shape by shape, event by event."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from spark_pace import load_rules
from spark_pace.core.levels import Levels
from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.lower_rules import input_schema
from spark_pace.core.plan.plan import build_plan
from tests.oracle.stream import Event
from tests.support.golden_cases import DIRECTORY, SCHEMA, GoldenCase, golden_cases, parse_events
from tests.support.results import table_of

ROOT = Path(__file__).parents[3]
UPPER = {"name": "upper", "from": "low", "pattern": {"sequence": [{"m": "true"}]}}


def with_upper(low: dict[str, Any]) -> LocalRun:
    """A run of a rule called low, and of one above it that takes each of its matches."""
    rules = load_rules({"events": SCHEMA, "rules": [low | {"name": "low"}, UPPER]})
    return LocalRun(build_plan(rules, order=OrderSpec()))


def found(local: LocalRun, events: list[Event]) -> list[str]:
    """For each event that lets matches out its id, and the rules of these."""
    read = next(rule for rule in local.plan.shown if not rule.reads)
    steps = []
    for event in events:
        matches = local.step(table_of(read, [event])).matches
        if matches.num_rows:
            steps.append(f"{event.row['id']}: {' '.join(matches['rule'].to_pylist())}")
    return steps


@pytest.mark.parametrize("case", golden_cases(DIRECTORY / "out_above"), ids=lambda case: case.name)
def test_an_upper_match_comes_with_the_event_that_lets_its_last_one_out(case: GoldenCase) -> None:
    expected = [f"{event}: {rules}" for event, rules in case.told["out"].items()]
    assert found(with_upper(case.rule), list(case.events)) == expected


def test_a_match_behind_one_that_waited_for_an_earlier_window_is_out_for_the_rules_above() -> None:
    (case,) = (one for one in golden_cases(DIRECTORY / "out_above") if one.name == "levels-17")
    local = with_upper({key: value for key, value in case.rule.items() if key != "span"})
    events = parse_events("a1@0 b1@1=1 a2@2 b2@4=2 a3@10.5 b3@11=2 z1@11.5")
    read = next(rule for rule in local.plan.shown if not rule.reads)
    step = local.step(table_of(read, events))
    assert step.matches["rule"].to_pylist() == ["low", "low", "low", "upper", "upper", "upper"]


BLOCK = re.compile(r"```yaml\n(?P<text>events: (?:(?!```).)*?name: incident.*?)```", re.DOTALL)
GUESSED = """
00:00 a connect 1,   00:10 a connect 2,   01:00 a fail,   01:01 a fail,   01:02 a fail,   01:03 a fail
01:04 a fail,   01:05 a accept,   05:00 b connect 1,   05:10 b connect 2,   06:00 b fail,   07:30 z other
"""


def test_the_incident_of_the_guide_is_out_with_its_last_alarm() -> None:
    block = BLOCK.search((ROOT / "docs/rules/levels.md").read_text())
    assert block is not None
    rules = load_rules(block["text"])
    lines = [line.split() for line in re.split(r",\s+|\n", GUESSED.strip())]
    events = []
    for place, (at, ip, kind, *port) in enumerate(lines):
        minutes, seconds = at.split(":")
        time = (60 * int(minutes) + int(seconds)) * 1_000_000
        row = {"time": time, "id": at, "ip": ip, "kind": kind, "port": int(port[0]) if port else None}
        events.append(Event(time, "s", place, row))
    steps = found(LocalRun(build_plan(rules, order=OrderSpec())), events)
    assert steps == ["01:00: scan", "05:00: brute_force incident", "06:00: scan"]


def test_the_incident_of_the_cookbook_is_out_with_its_log_in() -> None:
    folder = ROOT / "examples/cookbook/incident"
    rules = load_rules(folder / "rule.yaml")
    lines = (folder / "events.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines] + [
        {"time": "2026-03-02T08:10:01Z", "ip": "z", "kind": "other"}
    ]
    names = [field.name for field in input_schema(rules).fields]
    events = []
    for place, row in enumerate(rows):
        time = int(datetime.fromisoformat(row["time"]).timestamp()) * 1_000_000
        known = dict.fromkeys(names) | row | {"time": time, "id": row["time"][11:19]}
        events.append(Event(time, "s", place, known))
    assert found(LocalRun(build_plan(rules, order=OrderSpec())), events)[-1] == "08:10:01: incident"


def restored(local: LocalRun, snapshot: bytes) -> LocalRun:
    local.levels = Levels(local.plan, snapshot)
    return local


def test_the_state_tells_of_what_waits() -> None:
    (case,) = (one for one in golden_cases(DIRECTORY / "out_above") if one.name == "levels-5")
    local, after = with_upper(case.rule), "z2@7 a4@8=7,3 b4@9=7,3 z3@16"
    assert found(local, list(case.events[:-1])) == ["z1: low"]
    expected = ["z2: low low upper upper upper", "z3: low upper"]
    assert found(restored(local, local.levels.snapshot()), list(parse_events(after))) == expected
